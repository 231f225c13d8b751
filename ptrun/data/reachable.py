"""Ask whether the network answers, within a fixed time: a look-up of a name alone may hang for a minute."""

import http.client
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence

SECONDS = 5.0


def reachable(urls: Sequence[str], seconds: float = SECONDS) -> bool:
    """Return whether any of these http(s) addresses gives any answer within `seconds`, through the user's proxies."""
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
    deadline = time.monotonic() + seconds
    for url in urls:
        # Daemons: a name look-up that hangs cannot be interrupted, only left behind.
        threading.Thread(target=lambda url=url: answers.put(_answers(url, seconds)), daemon=True).start()
    for _ in urls:
        try:
            if answers.get(timeout=max(deadline - time.monotonic(), 0)):
                return True
        except queue.Empty:
            return False
    return False


def _answers(url: str, seconds: float) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=seconds):
            return True
    except urllib.error.HTTPError:
        return True  # refused, but by someone who is there
    except (OSError, http.client.HTTPException, ValueError):
        return False
