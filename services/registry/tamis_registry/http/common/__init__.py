"""Parts that all routes share: parameters, errors, rights, and turns of requests that read topics."""
