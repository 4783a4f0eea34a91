"""Compare the table of models with genai-prices and with the names in the official package: `python -m tests.lab models`.

It prints each price that differs, and each model of the official types of answers that the table lacks. Prices that
differ make it fail; a name that is missing is worth a look, no more.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import get_args

from genai_prices import Usage, calc_price
from openai.types.shared.chat_model import ChatModel

from responses_mcp.usage.models import TABLE, PriceList, family_of
from responses_mcp.usage.models import Usage as Spent

READ, WROTE, CACHED = 100_000, 10_000, 40_000
NO_ANSWERS = ("audio", "search", "gpt-3.5", "gpt-4-", "chatgpt", "codex-mini-latest", "o1-", "gpt-5.1-mini")


def differences() -> Iterator[str]:
    """Yield a line for each model whose price here is not that of genai-prices."""
    prices, now = PriceList({}), datetime.now(UTC)
    for model in TABLE:
        used = Usage(input_tokens=READ, cache_read_tokens=CACHED, output_tokens=WROTE)
        try:
            found = calc_price(used, model, provider_id="openai", genai_request_timestamp=now)
        except LookupError:
            print(f"{model}: not in genai-prices")
            continue
        theirs = float(found.total_price)
        ours = prices.cost(model, Spent(input_tokens=READ, output_tokens=WROTE, cached_tokens=CACHED))
        if ours is None or abs(ours - theirs) > 1e-9:
            yield f"{model}: {ours} here, {theirs} as {found.model.id} in genai-prices"


def main() -> int:
    """Print what was found and return the exit code."""
    named = [name for name in get_args(ChatModel) if not any(part in name for part in NO_ANSWERS)]
    for name in named:
        if family_of(name) is None and name != "gpt-4":
            print(f"{name}: in the official types, not in the table")
    found = list(differences())
    print("\n".join(found) if found else f"the prices of {len(TABLE)} models agree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
