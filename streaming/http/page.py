"""The console page and its parts, from the package's own folder; they load nothing else."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).parent / "console"
_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}

PAGE_PATHS = frozenset({"/", *(f"/{name}" for name in _TYPES)})


def page_routes() -> list[Route]:
    """The page at `/`, and its parts by their names; they are read once."""
    return [_route("/", "index.html"), *(_route(f"/{name}", name) for name in _TYPES)]


def _route(path: str, name: str) -> Route:
    body = (FOLDER / name).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(body, headers={**_HEADERS, "content-type": _TYPES[name]})

    return Route(path, answer)
