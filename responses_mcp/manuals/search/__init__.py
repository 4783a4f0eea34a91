"""A search on its way: query, candidates, scores, ranking, selection, and the find that puts them together."""
