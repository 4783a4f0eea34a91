"""Which encoding a text has that is not UTF-8: the one in which most of its letters are frequent ones."""

from __future__ import annotations

import re
from typing import Final

_KANJI: Final = (
    "日一国人年大十二本中長出三時行見月後前生五間上東四今金九入学高円子外八六下来気小七山話女北午百書先名川千水半男西電校語土木聞食車何南万毎白"
    "天母火右読友左休父雨会同事自社発者地業方新場員立開手力問代明動京目通言理体田主題意不作用度強公持野以思家世多正安院心界教文元重近考画海売"
    "知道集別物使品計死特私始朝運終台広住無真有口少町料工建空急止送切転研足究起着店病質待試設定変更必要表示機能設備資報情対象全部分第条規則"
)
_HANZI: Final = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同"
    "现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重"
    "并物手应向头文体政相见被利什二等产或新制身果加西月话合回特代内信表化世位次度任常先海通教原东提立及比员解水名真论处义各入条平系气题活更别打"
    "变总电数安少报结反受目太量再建务做接必场件计管期市直资命指统区保形社便设式路记品住告类求据程该交规取确传据设置文件输入密码"
)
_HANGUL: Final = (
    "이다는의에을가고한하지를로은자시사기대어서그인도아리정나라과만해부스수주일보장제여전으상원성들것니게있구동적면경위국계조화용안행선문신유관분학당"
    "생미했요년공오와중비무거세러방소개발교민우내및등때않습"
)
# An encoding, and the letters that its texts have much of.
_CANDIDATES: Final = (
    ("euc_jp", re.compile(f"[\u3041-\u3096\u30a1-\u30fa{_KANJI}]")),
    ("cp932", re.compile(f"[\u3041-\u3096\u30a1-\u30fa{_KANJI}]")),
    ("cp949", re.compile(f"[{_HANGUL}]")),
    ("gb18030", re.compile(f"[{_HANZI}]")),
)
_WESTERN: Final = "cp1252"
_WESTERN_TEXT: Final = re.compile("[À-ÖØ-öø-ýŒœŠšŽž‘-„†-…€‹›™ªº©®°·§«»¿¡±µ²³½×÷£–—\xa0]")
_NOT_ASCII: Final = re.compile("[^\0-\x7f]")
_RUN: Final = re.compile("[^\0-\x7f]+")
_LETTERS: Final = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NARROW: Final = re.compile("[ｦ-ﾟ]{3,}")  # katakana of one byte, which other encodings have for halves of letters
_LEAST: Final = 0.25  # the share of frequent letters that a text has; in a wrong encoding it is about a tenth
_LEAST_OF_RUNS: Final = 0.1  # the same, where letters that are not ASCII stand beside each other, as in no western text
_LONG_RUN: Final = 4  # characters of such a run
_MOST_WRONG: Final = 0.02  # the share of characters that may be wrong bytes
_SAMPLE: Final = 32 * 1024  # bytes of lines that are not ASCII

GUESSED: Final = frozenset(("cp949", "gb18030", _WESTERN))
"""Encodings that a reader is told of, for others have many of the same bytes."""


def guess(data: bytes) -> str:
    """Return the encoding of a piece of a text that is not all UTF-8; that one where no other fits better."""
    sample = b"\n".join(line for line in data.split(b"\n") if not line.isascii())[:_SAMPLE]
    western = _RUN.findall(sample.decode(_WESTERN, "replace"))
    wide = "".join(western)
    alone = sum(len(run) for run in western if len(run) < _LONG_RUN)
    best = _WESTERN if 2 * len(_WESTERN_TEXT.findall(wide)) > len(wide) < 2 * alone else "utf-8"
    most = least = _LEAST if best == _WESTERN else _LEAST_OF_RUNS
    for encoding, frequent in _CANDIDATES:
        foreign = "".join(_NOT_ASCII.findall(sample.decode(encoding, "replace")))
        if not foreign or foreign.count("\ufffd") > 1 + _MOST_WRONG * len(foreign):
            continue
        letters = len(_LETTERS.findall(foreign))
        share = len(frequent.findall(foreign)) / letters if 2 * letters >= len(foreign) > 0 else 0.0
        if share > most:
            best, most = encoding, share
    if most == least and _is_narrow(sample):
        return "cp932"
    return best


def _is_narrow(sample: bytes) -> bool:
    try:
        text = sample.decode("cp932")
    except UnicodeDecodeError:
        return False
    narrow = sum(map(len, _NARROW.findall(text)))
    return 0 < len(_NOT_ASCII.findall(text)) <= 2 * narrow
