"""Options of the smoke tests, which run from an installed wheel in a folder of their own."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real", action="store_true", help="ask the real API too; costs money and needs OPENAI_API_KEY")
