"""Asks services if they are ready: `helm test` runs this with the addresses of /readyz as arguments."""

import sys
import time
import urllib.error
import urllib.request

# The joiner's first batch takes up to a minute.
SECONDS = 120


def answer(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status, response.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()
    except OSError as error:
        return None, str(error)


def main():
    deadline = time.monotonic() + SECONDS
    waiting = sys.argv[1:]
    while waiting and time.monotonic() < deadline:
        answers = {url: answer(url) for url in waiting}
        for url in waiting:
            print(url, *answers[url], flush=True)
        waiting = [url for url in waiting if answers[url][0] != 200]
        if waiting:
            time.sleep(5)
    sys.exit(f"not ready: {', '.join(waiting)}" if waiting else None)


main()
