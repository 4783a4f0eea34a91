"""The search: query, candidates, scores, ranking, selection, and the find that puts them together."""
