"""Models that are configured: whether they exist, and whether their announced end is past or near."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from difflib import get_close_matches
from typing import Final

from responses_mcp.commands.findings import Finding, fail, ok, warn
from responses_mcp.commands.terminal import counted
from responses_mcp.settings.model import Profile
from responses_mcp.settings.schema import BY_KEY
from responses_mcp.usage.models import family_of

_NEAR: Final = timedelta(days=60)


def announced_end(entry: Mapping[str, object]) -> date | None:
    """Return the `shutdown_date` of an entry of `GET /models`, YYYY-MM-DD; None for null or another form."""
    try:
        return date.fromisoformat(str(entry.get("shutdown_date"))[:10])
    except ValueError:
        return None


def check_models(
    profiles: Mapping[str, Profile],
    listed: Mapping[str, date | None] | None,
    today: date,
    *,
    all_listed: bool = True,
    sources: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """Judge each configured model once.

    `listed` is what the API has, with the ends that it announces, which count more than the table of models; None if
    that is not known. `all_listed` is false for an API that also serves models by names of the user's own. `sources`
    says where each setting comes from, and so where to change it.
    """
    for model in dict.fromkeys(profile.model for profile in profiles.values()):
        keys = [f"model_profiles.{name}" for name, profile in profiles.items() if profile.model == model]
        places = " and ".join(dict.fromkeys(_place(f"{key}.model", sources or {}) for key in keys))
        family, end, near = family_of(model), None, list[str]()
        if family is not None and family.end:
            end, near = date.fromisoformat(family.end), [family.successor]
        end = (listed or {}).get(model) or end
        past = end is not None and end < today
        what = f"{model} ({' and '.join(keys)})"
        if listed is not None and model not in listed:
            what += f" is not among the {counted(len(listed), 'model')} that the API lists for this key"
            near = near if past else get_close_matches(model, sorted(listed), n=3, cutoff=0.5)
        fix = f"set {places} to another model" + (f", for instance {' or '.join(near)}" if any(near) else "")
        if listed is not None and model not in listed:
            access = ", or give the key's project access to it" if all_listed else ", if no deployment has this name"
            judged = fail if past or all_listed else warn
            yield judged("models", f"{what}; it ended on {end}" if past else what, fix if past else fix + access)
        elif end is None or end - today > _NEAR:
            told = "was not looked up; no end is announced for the next 60 days"
            yield ok("models", f"{what} {told if listed is None else 'is listed by the API'}")
        elif past and listed is None:
            yield fail("models", f"{what} ended on {end}", fix)
        else:
            yield warn("models", f"{what} {f'ended on {end}, and is still listed' if past else f'ends on {end}'}", fix)


def _place(key: str, sources: Mapping[str, str]) -> str:
    """Return where to change a setting: a variable would win over whatever is changed in the file."""
    kind, _, place = sources.get(key, "").partition(":")
    default = f"{key} ({BY_KEY[key].env})" if key in BY_KEY else key
    return {"env": place, "yaml": f"{key} in {place}"}.get(kind, default)
