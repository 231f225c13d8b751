"""A web server on this machine with a set's zipped files."""

import gzip
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from .idx_bytes import idx_bytes


@dataclass
class Mirror:
    """A web server with the tiny set's zipped files; it notes what it was asked for."""

    url: str
    files: dict[str, bytes]
    asked: Counter[str] = field(default_factory=Counter)
    pause: float = 0.0  # seconds between two bytes


@contextmanager
def serve(arrays: dict[str, np.ndarray]) -> Iterator[Mirror]:
    files = {f"/{file}.gz": gzip.compress(idx_bytes(array)) for file, array in arrays.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            mirror.asked[self.path] += 1
            time.sleep(0.02)  # long enough for a second process to come in between
            self.send_response(200 if self.path in files else 404)
            content = files.get(self.path, b"")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            for part in (content[i : i + 1] for i in range(len(content))) if mirror.pause else [content]:
                self.wfile.write(part)
                time.sleep(mirror.pause)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        mirror = Mirror(f"http://127.0.0.1:{server.server_port}/", files)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield mirror
        server.shutdown()
        thread.join()
