"""How much the tests try: in the gate a little of everything, at night much. `TEST_PROFILE=nightly` chooses the latter."""

import os
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Profile:
    """Sizes that tests share."""

    examples: int  # of Hypothesis, for each property
    longest: int  # characters of the texts on which growth is measured
    same_examples: bool  # in every run: a gate must not fail over what nobody changed


PROFILES: Final = {
    "gate": Profile(examples=20, longest=2**16, same_examples=True),
    "nightly": Profile(examples=500, longest=2**20, same_examples=False),
}
PROFILE: Final = PROFILES[os.environ.get("TEST_PROFILE", "gate")]
