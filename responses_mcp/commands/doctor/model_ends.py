"""Models that are configured: whether they exist, and whether their announced end is past or near."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from difflib import get_close_matches
from typing import Final, NamedTuple

from responses_mcp.commands.findings import Finding, fail, ok, warn
from responses_mcp.settings.model import Profile
from responses_mcp.settings.schema import BY_KEY
from responses_mcp.usage.models import family_of

_NEAR: Final = timedelta(days=60)


class Announced(NamedTuple):
    """What the API's list says about a model's end: whether anything, and the last day, None for none."""

    told: bool = False
    end: date | None = None

    @classmethod
    def of(cls, entry: Mapping[str, object]) -> Announced:
        """Read `shutdown_date` of an entry of `GET /models`: YYYY-MM-DD or null; another form says nothing."""
        day = entry.get("shutdown_date", "")
        if not isinstance(day, str):
            return cls(told=day is None)
        try:
            return cls(told=True, end=date.fromisoformat(day[:10]))
        except ValueError:
            return cls()


def check_models(
    profiles: Mapping[str, Profile],
    listed: Mapping[str, Announced] | None,
    today: date,
    *,
    all_listed: bool = True,
    sources: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """Judge each configured model once.

    `listed` is what the API has, with what it announces, None if that is not known; what it announces counts more than
    the table of models. `all_listed` is false for an API that also serves models by names of the user's own.
    `sources` says where each setting comes from, and so where to change it.
    """
    users: dict[str, list[str]] = {}
    for name, profile in profiles.items():
        users.setdefault(profile.model, []).append(name)
    for model, names in users.items():
        keys = " and ".join(f"model_profiles.{name}" for name in names)
        places = " and ".join(dict.fromkeys(_place(name, sources or {}) for name in names))
        yield _judged(model, keys, places, listed, today, all_listed=all_listed)


def _place(name: str, sources: Mapping[str, str]) -> str:
    """Return where to change the model of a profile: a variable would win over whatever is changed in the file."""
    key = f"model_profiles.{name}.model"
    kind, _, place = sources.get(key, "").partition(":")
    if kind == "env":
        return place
    if kind == "yaml":
        return f"{key} in {place}"
    return f"{key} ({BY_KEY[key].env})" if key in BY_KEY else key


def _judged(
    model: str, keys: str, places: str, listed: Mapping[str, Announced] | None, today: date, *, all_listed: bool
) -> Finding:
    family = family_of(model)
    end, instead = (date.fromisoformat(family.end), family.successor) if family and family.end else (None, "")
    announced = (listed or {}).get(model, Announced())
    if announced.told:
        end = announced.end
    change = f"set {places} to another model"
    if listed is not None and model not in listed:
        near = get_close_matches(model, sorted(listed), n=3, cutoff=0.5)
        among = "the one model" if len(listed) == 1 else f"among the {len(listed)} models"
        found = f"{model} ({keys}) is not {among} that the API lists for this key"
        if end is not None and end < today:
            return fail(
                "models", f"{found}; it ended on {end}", change + (f", for instance {instead}" if instead else "")
            )
        fix = change + (f", for instance {' or '.join(near)}" if near else "")
        if all_listed:
            return fail("models", found, f"{fix}, or give the key's project access to it")
        return warn("models", found, f"check that a deployment has this name, or {fix}")
    if end is None or end - today > _NEAR:
        told = "was not looked up; no end is announced for the next 60 days"
        return ok("models", f"{model} ({keys}) {told if listed is None else 'is listed by the API'}")
    fix = f"set {places} to a model that stays" + (f", for instance {instead}" if instead else "")
    if end >= today:
        return warn("models", f"{model} ({keys}) ends on {end}", fix)
    if listed is not None:
        return warn("models", f"{model} ({keys}) is past its announced end, {end}, and still listed", fix)
    return fail("models", f"{model} ({keys}) ended on {end}", fix)
