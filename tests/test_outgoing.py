"""Secrets do not leave by mistake: what of a question is masked before it is sent, and what is not.

Every credential here is made up by a seed in the form of its issuer; none is anybody's.
"""

import base64
import json
import random
import string
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest
import trio

from responses_mcp.asking import open_answers
from responses_mcp.errors import BadArgument, UpstreamError
from responses_mcp.manuals.embeddings.provider import open_embedder
from responses_mcp.research.runs import open_research
from responses_mcp.secrets import OutgoingText, Redactor
from responses_mcp.settings.model import (
    EmbeddingsSettings,
    ManualsSettings,
    OpenAISettings,
    PrivacySettings,
    ResearchSettings,
    ServerSettings,
    Settings,
)
from responses_mcp.testing import Error, Json, as_stream, bodies, open_fake_api
from responses_mcp.testing.client import connected_client
from tests.growth import Hostile, superlinear

WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation
KEY = "canary-key-of-this-server-0123456789"
MASKED = "io.github.uchimanajet7/masked"
RANDOM = random.Random(17)
LETTERS = string.ascii_letters + string.digits


def some(length: int, alphabet: str = LETTERS) -> str:
    return "".join(RANDOM.choice(alphabet) for _ in range(length))


def b64(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def private_key(kind: str = "RSA ") -> str:
    lines = "\n".join(some(64, LETTERS + "+/") for _ in range(12))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


SECRETS: dict[str, Callable[[], tuple[str, str]]] = {
    "RSA key": lambda: ("private key", private_key()),
    "PKCS 8 key": lambda: ("private key", private_key("")),
    "OpenSSH key": lambda: ("private key", private_key("OPENSSH ")),
    "key without an end": lambda: ("private key", private_key()[: 32 + 65 * 4 - 1]),
    "key in one line of JSON": lambda: ("private key", private_key().replace("\n", "\\n")),
    "AWS key id": lambda: ("AWS access key", "AKIA" + some(16, string.ascii_uppercase + "234567")),
    "AWS session": lambda: ("AWS access key", "ASIA" + some(16, string.ascii_uppercase + "234567")),
    "GitHub": lambda: ("GitHub token", "ghp_" + some(36)),
    "GitHub App": lambda: ("GitHub token", "ghs_" + some(36)),
    "GitHub, fine-grained": lambda: ("GitHub token", f"github_pat_{some(22)}_{some(59)}"),
    "GitLab": lambda: ("GitLab token", "glpat-" + some(20, LETTERS + "_-")),
    "GitLab, with its cell": lambda: ("GitLab token", f"glpat-{some(27)}.01.{some(9, '0123456789abcdef')}"),
    "Slack bot": lambda: ("Slack token", f"xoxb-{some(12, string.digits)}-{some(12, string.digits)}-{some(24)}"),
    "Slack browser": lambda: (
        "Slack token",
        f"xoxc-{'-'.join(some(12, string.digits) for _ in range(3))}-{some(64, '0123456789abcdef')}",
    ),
    "Slack configuration": lambda: ("Slack token", f"xoxe.xoxp-1-{some(160)}"),
    "Slack refresh": lambda: ("Slack token", f"xoxe-1-{some(146)}"),
    "Slack app": lambda: (
        "Slack token",
        f"xapp-1-A{some(10, string.ascii_uppercase)}-{some(13, '0123456789')}-{some(64, '0123456789abcdef')}",
    ),
    "Google": lambda: ("Google key", "AIza" + some(35, LETTERS + "_-")),
    "Google OAuth": lambda: ("Google secret", "GOCSPX-" + some(28)),
    "Stripe": lambda: ("Stripe key", "sk_live_" + some(24)),
    "Stripe, restricted": lambda: ("Stripe key", "rk_live_" + some(99)),
    "OpenAI": lambda: ("OpenAI key", "sk-" + some(48)),
    "OpenAI project": lambda: ("OpenAI key", "sk-proj-" + some(120, LETTERS + "_-") + "A"),
    "Anthropic": lambda: ("Anthropic key", "sk-ant-api03-" + some(93, LETTERS + "_-") + "AA"),
    "OpenRouter": lambda: ("OpenRouter key", "sk-or-v1-" + some(64, "0123456789abcdef")),
    "Groq": lambda: ("Groq key", "gsk_" + some(52)),
    "xAI": lambda: ("xAI key", "xai-" + some(80)),
    "JWT": lambda: ("JWT", f"{b64({'alg': 'HS256', 'typ': 'JWT'})}.{b64({'sub': some(8), 'iat': 17})}.{some(43)}"),
    "ours": lambda: ("secret of this server", KEY),
}
PHRASES = (
    "{}",
    "Why does {} not work?",
    'key = "{}"',
    "curl -H 'Authorization: Bearer {}' x",
    "この鍵 {} は？",
    "({})",
    "TOKEN={}\nrun",
)

AWS_SECRET = "q8Zp2vLmKx+4/nB7tR1yWc9sDf3gHj5kA0eUiOpL"
OTHER_FORMS = {
    **{
        written.format(AWS_SECRET): ("AWS secret key", AWS_SECRET)
        for written in (
            "AWS_SECRET_ACCESS_KEY={}",
            "aws_secret_access_key = {}",
            'os.environ["AWS_SECRET_ACCESS_KEY"] = "{}"',
            "aws configure set aws_secret_access_key {}",
            '"SecretAccessKey": "{}",',
            '\\"SecretAccessKey\\": \\"{}\\"',
            "<SecretAccessKey>{}</SecretAccessKey>",
            "secretAccessKey: '{}'",
            "Secret access key: {}",
        )
    },
    "postgres://app:Tr0ub4dor-3xq@db.internal:5432/x": ("password in a URL", "Tr0ub4dor-3xq"),
    "https://me:kq8Zp2!vLm@ex.jp/": ("password in a URL", "kq8Zp2!vLm"),
    "https://hooks.slack.com/services/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": (
        "Slack webhook",
        "T8Q2ZK4M1/B7W3XN5P9/kq8Zp2vLmKx4nB7tR1yWc9sD",
    ),
}

EXAMPLES = (
    "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "sk-1234567890abcdef1234567890abcdef1234567890abcdef",
    "sk-ant-api03-your-key-here-your-key-here-your-key-here", "ghp_1234567890abcdefghijklmnopqrstuvwxyz", "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
    "xoxb-123456789012-1234567890123-xxxxxxxxxxxxxxxxxxxxxxxx", "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "glpat-xxxxxxxxxxxxxxxxxxxx",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
)  # fmt: skip
NO_FORMS = (
    "sk-...", "sk-proj-YOUR_KEY", "github_pat_XXXX", "xoxb-your-token", "YOUR_KEY", "<API_KEY>", "$OPENAI_API_KEY", "Bearer ${TOKEN}",
    "git@github.com:a/b.git", "-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN CERTIFICATE-----\n" + "Q2VydGlmaWNhdGU" * 20,
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHk3q8Zp2vLmKx4nB7tR1yWc9sDf3gHj5kA0eUiOpLxy me@host", "npm sha512-" + "q8Zp2vLmKx4nB7tR1yWc9sDf3gHj5kA0eUiOpL" * 2 + "==",
)  # fmt: skip

URL = "password in a URL"
WORDS = ("correct", "horse", "battery", "staple", "winter", "purple", "monkey", "castle", "rocket", "velvet")
LIKE_PLACEHOLDERS = ("pass", "Pass", "pwd", "secret", "Token", "your", "xxx", "example", "changeme", "test", "dummy")


def typed(chance: random.Random, signs: str, least: int = 9, most: int = 20) -> str:
    return "".join(chance.choice(signs) for _ in range(chance.randint(least, most)))


# Each in the way in which it stands in an address. What people choose, and what programs make for them.
PASSWORDS: dict[str, Callable[[random.Random], str]] = {
    "digits and a sign first": lambda chance: (
        f"{chance.randrange(10**5)}{chance.choice('*,;)#&!')}{''.join(chance.choices(string.ascii_letters, k=8))}"
    ),
    "letters and digits": lambda chance: typed(chance, LETTERS) + "q7",
    "signs": lambda chance: typed(chance, LETTERS + "!$%&*+,;=~^()[]{}<>|?#-_.") + "7",
    "percent escapes": lambda chance: quote(typed(chance, LETTERS + "@:/?#[]%! ") + "q/7", safe=""),
    "@ without an escape": lambda chance: typed(chance, LETTERS, 3) + "@" + typed(chance, LETTERS + "!", 3) + "7",
    "a passphrase": lambda chance: "-".join(chance.sample(WORDS, 4)),
    "a passphrase with a word of placeholders": lambda chance: "-".join(
        (*chance.sample(WORDS, 3), chance.choice(LIKE_PLACEHOLDERS))
    ),
    "a word of placeholders before": lambda chance: chance.choice(LIKE_PLACEHOLDERS) + typed(chance, LETTERS, 5) + "8",
    "a word of placeholders behind": lambda chance: "q8" + typed(chance, LETTERS, 4) + chance.choice(LIKE_PLACEHOLDERS),
    "a word of placeholders and a year": lambda chance: (
        f"My{chance.choice(LIKE_PLACEHOLDERS)}{chance.randint(1950, 2030)}{chance.choice('!?$#*')}"
    ),
    "digits for letters": lambda chance: chance.choice(("Passw0rd", "p4ssword", "s3cret", "t0ken", "P@ssw0rd", "$ecret")) + "9!",
    "a dollar before": lambda chance: "$" + typed(chance, LETTERS) + "q8v",
    "a dollar within": lambda chance: f"{chance.choice(WORDS)}${chance.choice(WORDS).upper()}",
    "a name behind a dollar": lambda chance: f"${chance.choice(WORDS)}{chance.randint(10, 2030)}",
    "brackets left around": lambda chance: chance.choice(("[{}]", "<{}>", "{{{}}}", "%{}%", "$({})", "${{{}}}")).format(
        typed(chance, LETTERS) + "4q8v"
    ),
    "a phrase in brackets": lambda chance: f"[{'-'.join(chance.sample(WORDS, 3))}]",
    "a default of a variable": lambda chance: f"${{DB_PASSWORD:-{typed(chance, LETTERS)}q8}}",
    "half of it hidden": lambda chance: typed(chance, LETTERS, 4, 6) + chance.choice(("...", "…", "****", "xxxx")) + "q8",
    "a role and a number": lambda chance: chance.choice(("admin", "root", "postgres", "redis")) + chance.choice(("12", "123", "@123", "2026")),
    "a weak word and a number": lambda chance: chance.choice(("Strong", "secure", "access", "$pass", "Test@", "Local", "$ecret")) + str(chance.randint(200, 9999)),
    "marks of a template in a word": lambda chance: chance.choice(("strong{{{}}}", "my%{}%", "test<{}>", "secret${}", "{{{}}}pass", "pass[{}]7")).format(chance.choice(WORDS)),
    "signs alone": lambda chance: typed(chance, "!$%^&*()+=") + "!^",
}  # fmt: skip


def settings(
    mode: Literal["mask", "refuse", "allow"] = "mask", base_url: str = "https://ex.jp/v1", **more: Any
) -> Settings:
    openai = OpenAISettings(api_key=KEY, base_url=base_url)
    return Settings(openai=openai, privacy=PrivacySettings(outgoing_secrets=mode), **more)


MASK = OutgoingText("mask", [KEY])


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_masked_by_its_kind_wherever_it_stands(name: str) -> None:
    for phrase in PHRASES:
        kind, secret = SECRETS[name]()
        sent = MASK.question(phrase.format(secret))
        assert sent == (phrase.format(f"[masked: {kind}]"), {kind: 1}), phrase


@pytest.mark.parametrize("mark", ["\u200b", "\u2060", "\xad", "\ufeff", "\u200d", "\u202e", "\U000e0041"])
def test_a_secret_that_invisible_characters_split_is_masked(mark: str) -> None:
    for name in ("GitHub", "OpenAI project", "JWT", "ours"):
        kind, secret = SECRETS[name]()
        sent = MASK.question(f"Why does {secret[:9]}{mark}{mark}{secret[9:]} fail?")
        assert sent == (f"Why does [masked: {kind}] fail?", {kind: 1})
    for text in ("می\u200cخواهم", "👩\u200d💻", f"pass{mark}word"):
        assert MASK.question(text) == (text, {})


@pytest.mark.parametrize("text", OTHER_FORMS)
def test_of_what_stands_in_an_address_or_a_setting_the_secret_alone_is_masked(text: str) -> None:
    kind, secret = OTHER_FORMS[text]
    assert MASK.question(f"Why: {text}?") == (f"Why: {text.replace(secret, f'[masked: {kind}]')}?", {kind: 1})


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_documentation_is_masked_like_a_secret(example: str) -> None:
    written = f"aws_secret_access_key = {example}" if example.startswith("wJalr") else example
    written = f"https://hooks.slack.com/services/{example}" if example.startswith("T0") else written
    sent = MASK.question(f"What does `{written}` mean?")
    assert example not in sent.text
    assert sum(sent.masked.values()) == 1


@pytest.mark.parametrize("text", NO_FORMS)
def test_what_has_no_known_form_is_left_as_it_is(text: str) -> None:
    question = f"What does `{text}` mean?"
    assert MASK.question(question) == (question, {})


@pytest.mark.parametrize("kind", PASSWORDS)
def test_a_password_in_an_address_is_masked_whatever_it_contains(kind: str) -> None:
    chance = random.Random(kind)
    made = [PASSWORDS[kind](chance) for _ in range(100)]
    sent = {each: MASK.question(f"Why does postgres://app:{each}@db.internal:5432/x fail?") for each in made}
    expected = (f"Why does postgres://app:[masked: {URL}]@db.internal:5432/x fail?", {URL: 1})
    assert {each: text for each, text in sent.items() if text != expected} == {}


@pytest.mark.parametrize("address", [
    "postgres://app:{}@", '"postgres://app:{}@" + host', "f'postgres://app:{}@' f'{{host}}'", "postgres://app:{}@<host>:5432/x", "postgres://app:{}@${{HOST}}/x", "postgres://app:{}@$HOST/x", "postgres://app:{}@***/x",
    "postgres://app:{}@{{host}}/x", "postgres://app:{}@[::1]/x", "postgres://app:{}@.../x", "postgres://app@server:{}@server.ex.jp/x",
    "postgres://<user>:{}@db/x", "postgres://${{DB_USER:-app}}:{}@db/x", "redis://:{}@cache:6379",
])  # fmt: skip
def test_a_password_is_masked_whatever_hides_the_rest_of_its_address(address: str) -> None:
    assert MASK.question(address.format("kq8Zp2vLm")) == (address.format(f"[masked: {URL}]"), {URL: 1})


@pytest.mark.parametrize("name", ["Kq8vN2xLw0", "c0ffee42", "summer2026"])
def test_what_is_no_word_is_a_password_even_where_the_user_has_it_for_a_name(name: str) -> None:
    assert MASK.question(f"https://{name}:{name}@ex.jp/") == (f"https://{name}:[masked: {URL}]@ex.jp/", {URL: 1})


@pytest.mark.parametrize(
    "text",
    [
        "docker://alpine:3.18.4@sha256:abc",
        "oci://image:latest@sha512:abc",
        "http://localhost:8080",
        "curl http://localhost:8000?email=jane@example.com gives 404, why?",
        "開発サーバーはhttp://localhost:8080で動いています。問い合わせ先はsupport@example.comです。",
        "http://localhost:3000で`@angular/core`のエラーが出ます",
        "打开http://127.0.0.1:8000后，@login_required装饰器不起作用",
        "jdbc:sqlserver://db.example.net:1433;database=x;user=jane@db;password={your_password_here};encrypt=true",
        "https://shop.example:8443,jane@example.com,active",
        "|http://grafana:3000|ops@corp.com|",
        "`http://localhost:4200`,`@angular/core`",
        "<a href=http://grafana:3000>ops@corp.com</a>",
        "PLAINTEXT://kafka:9092,voters=1@kafka:9093",
        "{origin:http://localhost:3000,pkg:@types/node}",
        '"postgres://%s:%s@%s:%d/%s"',
        "<https://example.com>、連絡先:support@example.com",
        "http://localhost:8080(user@example.com)",
        "https://example.com?u=mailto:somebody@example.com",
    ],
)
def test_an_address_without_a_password_has_none(text: str) -> None:
    assert MASK.question(text) == (text, {})


@pytest.mark.parametrize(
    ("before", "password", "behind"),
    [
        ("redis://:", "19#Kq9zLm2w", "@cache:6379/0"),
        ("redis://:", "x", "@cache:6379/0"),
        ("postgres://app:", "pw", "@db/x"),
        ("postgresql://user:", "password", "@localhost?application_name=a@b"),
        ("postgresql://user:", "password", "@localhost:5432を使うと@Entityが動かない"),
        ("postgresql://user:", "$PASSWORD", "@localhostで@Entityが動かない"),
        ("postgres://app:", "12ab5", "@db/x"),
        ("https://bob:", "2024;xQ9pLm2w", "@git.example.org/r.git"),
        ("ftp://ユーザー:", "Kq9zLm2w", "@h.example/x"),
        ("https://u:", "Kq9@zL@m2@w7@x9", "@host.example/x"),
        ("https://first.last:", "Kq9zLm2w", "@host.example/x"),
        ("https://first.last:", "42*KyotoBlue", "@host.example/x"),
        ("https://first.last:", "19,Kyoto,84", "@host.example/x"),
        ("redis://:", "2024,kyoto=blue", "@cache:6379/0"),
        ("postgres://app:", "Kq9£zLm§2w€", "@db/x"),
    ],
)
def test_a_password_is_masked_where_it_is_like_a_port_or_its_user_like_a_host(
    before: str, password: str, behind: str
) -> None:
    assert MASK.question(f"{before}{password}{behind}") == (f"{before}[masked: {URL}]{behind}", {URL: 1})


def questions(count: int) -> list[str]:
    """Return ordinary questions about code, with what such questions have in them."""
    chance = random.Random(2000)

    def word(length: int, alphabet: str) -> str:
        return "".join(chance.choice(alphabet) for _ in range(length))

    made: list[Callable[[], str]] = [
        lambda: f"Why is there no row with id {uuid.UUID(int=chance.getrandbits(128), version=4)} in Postgres?",
        lambda: f"git bisect says {word(40, '0123456789abcdef')} is the first bad commit, what now?",
        lambda: f"pip: THESE PACKAGES DO NOT MATCH THE HASHES sha256:{word(64, '0123456789abcdef')}",
        lambda: f"md5 {word(32, '0123456789abcdef')} or sha512-{base64.b64encode(chance.randbytes(64)).decode()}?",
        lambda: f'<img src="data:image/png;base64,{base64.b64encode(chance.randbytes(3_000)).decode()}"> is broken',
        lambda: f"url-safe: {base64.urlsafe_b64encode(chance.randbytes(200)).decode()} how to decode?",
        lambda: f"docker pull registry.example/app@sha256:{word(64, '0123456789abcdef')} fails",
        lambda: f"How do I use {chance.choice(NO_FORMS)} in {chance.choice(('Rust', 'Go', 'Python', 'TypeScript'))}?",
        lambda: f"https://ex.jp/{word(12, LETTERS)}?q={word(24, LETTERS)}&s={word(40, LETTERS)} gives 404",
        lambda: f"ssh-rsa AAAAB3NzaC1yc2E{word(340, LETTERS + '+/')}== me@host is refused",
        lambda: (
            f"Ethereum 0x{word(40, '0123456789abcdef')}, key id {word(16, '0123456789ABCDEF')}, ARN arn:aws:iam::{word(12, string.digits)}:role/x"
        ),
        lambda: (
            f"Rust の E0{word(3, string.digits)} は何？ trace_id={word(32, '0123456789abcdef')} build {word(20, LETTERS)}"
        ),
        lambda: f"const sk_{word(20, string.ascii_lowercase)} = getenv('API_KEY'); // {word(60, LETTERS)}",
        lambda: f"kubectl: token {word(6, LETTERS)}.{word(16, LETTERS)} eyJ{word(30, LETTERS)} invalid",
    ]
    return [chance.choice(made)() for _ in range(count)]


def test_no_ordinary_question_is_changed() -> None:
    asked = questions(2_000)
    masked = [
        (question[:200], dict(sent.masked)) for question in asked if (sent := MASK.question(question)).text != question
    ]
    assert masked == []


def test_a_hostile_question_is_masked_in_time_in_proportion_to_its_length() -> None:
    pieces = (
        "eyJ" * 9 + ".",
        "sk-",
        "-----BEGIN PRIVATE KEY-----",
        "://a:b",
        "AKIA",
        "xoxb-12345678-",
        "aws_secret_key",
        "A" * 64,
        "://",
        "://a:${b",
        "://${a:",
        "://a:password@b ",
        "://a:" + "pass" * 49 + "!@b ",
        "://a:" + "$PASS" * 39 + "@b ",
    )
    assert superlinear(MASK.question, [Hostile("", piece, "") for piece in pieces], shortest=1024) is None


def test_a_refused_question_names_kinds_and_the_cure_and_never_the_text() -> None:
    _, secret = SECRETS["GitHub"]()
    with pytest.raises(BadArgument) as caught:
        OutgoingText("refuse").question(f"{secret} and {secret}")
    assert "2 x GitHub token" in str(caught.value)
    assert "PRIVACY_OUTGOING_SECRETS" in str(caught.value)
    assert secret not in str(caught.value)


def test_what_is_allowed_is_sent() -> None:
    _, secret = SECRETS["GitHub"]()
    assert OutgoingText("allow").question(secret) == (secret, {})


def test_a_log_masks_whatever_a_question_would() -> None:
    for make in SECRETS.values():
        kind, secret = make()
        shown = Redactor([KEY])(f"line {secret} end")
        assert secret not in shown, kind


@pytest.mark.parametrize("tool", ["answer", "chatgpt_o3_search"])
async def test_a_client_learns_what_was_masked_and_the_api_gets_none_of_it(tool: str) -> None:
    _, secret = SECRETS["GitHub"]()
    params = {"name": tool, "arguments": {"query": f"{secret} {secret} why?"}, "_meta": {"progressToken": "p"}}
    reply = bodies.answer(
        '[{"url": "https://ex.jp/", "title": "T", "snippet": "S"}]',
        searches=[bodies.web_search_call(["q"], ["https://ex.jp/"])],
    )
    with trio.fail_after(WAIT):
        async with open_fake_api(Json(reply)) as api:
            chosen = settings(base_url=api.base_url, server=ServerSettings(toolsets=("answer", "search")))
            async with connected_client(chosen) as client:
                message = await client.response(await client.request("tools/call", params))
            sent = json.dumps(api.requests[0].json)
    assert message["result"]["_meta"][MASKED] == {"GitHub token": 2}
    assert "[masked: GitHub token] [masked: GitHub token] why?" in sent
    assert secret not in sent + json.dumps(client.heard)
    assert "masked in the question: 2 x GitHub token" in json.dumps(client.heard)


@pytest.mark.parametrize("key", ["ollama", "none", "EMPTY", "lm-studio", "not-needed"])
async def test_what_stands_for_no_key_is_left_in_answers_addresses_and_errors(key: str) -> None:
    said = f"It is {key} in {key}s, see https://{key}.example/{key}."
    cited = bodies.url_citation(f"https://{key}.example/{key}", f"About {key}", 0, 5)
    with trio.fail_after(WAIT):
        async with open_fake_api(as_stream(bodies.answer(said, annotations=[cited]))) as api:
            openai = OpenAISettings(api_key=key, base_url=api.base_url)
            async with open_answers(Settings(openai=openai)) as answers:
                answer = await answers.answer("q")
                api.script(Error(400, message=f"There is no {key} here."))
                with pytest.raises(UpstreamError, match=f"There is no {key} here"):
                    await answers.answer("q")
    assert answer.text.startswith(said)
    assert [(each.url, each.title) for each in answer.citations] == [(f"https://{key}.example/{key}", f"About {key}")]


@pytest.mark.parametrize("key", ["swordfish", "Medium", "my-key", "sk-abcdef"])
async def test_a_short_key_is_masked_in_answers_and_errors(key: str) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(as_stream(bodies.answer(f"It is {key}.")), Error(400, message=f"No {key}.")) as api:
            openai = OpenAISettings(api_key=key, base_url=api.base_url)
            async with open_answers(Settings(openai=openai)) as answers:
                answer = await answers.answer("q")
                with pytest.raises(UpstreamError) as failed:
                    await answers.answer("q")
    assert key not in answer.text + str(failed.value)


async def test_a_question_without_secrets_is_sent_as_it_is_and_nothing_is_said_of_it() -> None:
    async with (
        open_fake_api(Json(bodies.answer("A."))) as api,
        connected_client(settings(base_url=api.base_url)) as client,
    ):
        with trio.fail_after(WAIT):
            message = await client.ask(
                "tools/call", {"name": "answer", "arguments": {"query": " wh\ty? \n", "domains": ["a.jp"]}}
            )
    assert MASKED not in message["result"].get("_meta", {})
    assert api.requests[0].json["input"].startswith(" wh\ty? \n\n\n[Hints] ")


async def test_a_refused_question_makes_no_request() -> None:
    _, secret = SECRETS["Stripe"]()
    with trio.fail_after(WAIT):
        async with open_fake_api() as api:
            chosen = settings("refuse", api.base_url)
            async with open_answers(chosen) as answers, open_answers(chosen) as search:
                for ask in (answers.answer, search.search):
                    with pytest.raises(BadArgument, match="Stripe key"):
                        await ask(f"what is {secret}")
                with pytest.raises(BadArgument, match="password in a URL"):
                    await answers.answer("q", domains=["https://me:kq8Zp2!vLm@ex.jp/"])
            assert not api.requests


def holding(folder: Path, text: str) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


async def test_research_masks_a_question_and_says_so(tmp_path: Path) -> None:
    _, secret = SECRETS["Slack bot"]()
    with trio.fail_after(WAIT):
        async with open_fake_api(as_stream(bodies.answer("A."))) as api:
            kept = ResearchSettings(state_dir=str(tmp_path))
            chosen = settings(base_url=api.base_url, research=kept, server=ServerSettings(toolsets=("research",)))
            async with connected_client(chosen) as client:
                arguments = {"query": f"what is {secret}", "wait_seconds": 20}
                message = await client.ask("tools/call", {"name": "research", "arguments": arguments})
            assert message["result"]["_meta"][MASKED] == {"Slack token": 1}
            assert secret not in json.dumps([request.json for request in api.requests])
    assert not holding(tmp_path, secret)


@pytest.mark.parametrize("mode", ["mask", "allow"])
async def test_the_key_is_neither_listed_nor_kept_with_a_question_whatever_may_leave(
    mode: Literal["mask", "allow"], tmp_path: Path
) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(as_stream(bodies.answer("A."))) as api:
            kept = ResearchSettings(state_dir=str(tmp_path))
            async with open_research(settings(mode, api.base_url, research=kept)) as research:
                run = await research.start(f"my key is {KEY} {'and ' * 40}{KEY}", label=f"of {KEY}")
                await research.result(run, wait_seconds=WAIT)
                [listed] = await research.list()
            sent = json.dumps([request.json for request in api.requests])
    assert (KEY in sent) == (mode == "allow")
    assert KEY[:8] not in listed["label"]
    assert not holding(tmp_path, KEY[:8])


@pytest.mark.parametrize("mode", ["mask", "refuse"])
async def test_texts_for_embeddings_are_masked(mode: Literal["mask", "refuse"]) -> None:
    _, secret = SECRETS["Google"]()
    with trio.fail_after(WAIT):
        async with open_fake_api() as api:
            api.embed = lambda texts: [[1.0, 2.0] for _ in texts]
            manuals = ManualsSettings(embeddings=EmbeddingsSettings(provider="api"))
            embedder = open_embedder(settings(mode, api.base_url, manuals=manuals))
            assert embedder is not None
            await embedder.embed([f"the key is {secret}", "plain"])
            await embedder.aclose()
    assert api.requests[0].json["input"] == ["the key is [masked: Google key]", "plain"]
