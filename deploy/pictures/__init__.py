"""Pictures of the explanations in docs, computed by Tamis' own functions; `make pictures` draws them anew."""
