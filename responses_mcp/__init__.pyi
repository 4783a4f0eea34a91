from responses_mcp.asking import open_answers as open_answers
from responses_mcp.manuals.service import open_manuals as open_manuals
from responses_mcp.research.runs import open_research as open_research
from responses_mcp.serving import serve as serve
from responses_mcp.settings.load import load_settings as load_settings

__all__ = ["load_settings", "open_answers", "open_manuals", "open_research", "serve"]

__version__: str
