"""OpenAI's Responses API: what is asked, how often, and what the answer means."""
