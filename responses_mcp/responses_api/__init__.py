"""OpenAI's Responses API: requests, retries, background mode, and the meaning of replies."""
