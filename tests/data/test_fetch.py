"""Fetching over a loopback server with faults: nothing appears under its final name unless it is
whole and right.
"""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from genodiff.data import fetch
from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import Recipe, Source, load_recipe
from genodiff.errors import DataError
from genodiff.io.target import cache_dir

FASTA = b">a\n" + b"ACGT" * 500 + b"\n"
HASH = hashlib.sha256(FASTA).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves FASTA under faults: `plan` is a list of what to do for each download, the last one
    repeated.
    """

    plan: tuple[str, ...] = ("good",)
    served = 0
    stated = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/genome.fa"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        act = self.server.plan[min(self.server.served, len(self.server.plan) - 1)]
        self.server.served += 1
        if act == "500":
            self.send_error(500)
            return
        if act.startswith("->"):
            self.send_response(302)
            if self.server.stated:
                self.send_header("X-Linked-Etag", self.server.stated)
            self.send_header("Location", act[2:])
            self.end_headers()
            return
        body = FASTA.replace(b"A", b"C") if act == "wrong" else FASTA
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        if self.server.stated:
            self.send_header("X-Linked-Etag", self.server.stated)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if act == "cut" else body)


@contextmanager
def serving() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setattr(fetch, "SCHEMES", ("http",))
    monkeypatch.setattr(fetch, "PAUSE", 0.01)
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving() as server:
        yield server


def recipe_for(url: str, sha256: str | None = HASH) -> Recipe:
    source = Source.model_construct(url=url, filename="genome.fa", sha256=sha256, licence="none")
    return Recipe(name="small", contigs={"a": 2000}).model_copy(update={"sources": (source,)})


def leftovers(recipe: Recipe) -> list[str]:
    folder = fetch.find_local_path(recipe.sources[0]).parent
    return sorted(p.name for p in folder.iterdir() if not p.name.endswith(".lock"))


@pytest.mark.parametrize(
    "plan", [("good",), ("500", "good"), ("cut", "cut", "good"), ("wrong", "500", "good")]
)
def test_a_file_arrives_whole_after_up_to_two_failures_and_is_not_fetched_again(server, plan):
    server.plan = plan
    recipe = recipe_for(server.url)
    (path,) = fetch.fetch(recipe)
    assert path.read_bytes() == FASTA
    assert leftovers(recipe) == ["genome.fa", "genome.fa.json"]
    served = server.served
    assert fetch.fetch(recipe, offline=True) == [path]
    assert server.served == served


@pytest.mark.parametrize(
    "fault", ["500", "cut", "wrong", "->file:///etc/hostname", "->https://127.0.0.1:1/x"]
)
def test_three_failures_are_one_line_with_url_and_remedy_and_leave_nothing(server, fault):
    server.plan = (fault,)
    recipe = recipe_for(server.url)
    with pytest.raises(DataError) as told:
        fetch.fetch(recipe)
    for part in ("genome.fa", "could not be fetched", server.url, "--fasta"):
        assert part in str(told.value)
    assert ("refused" in str(told.value)) == fault.startswith("->")
    assert leftovers(recipe) == []
    assert server.served == fetch.TRIES


def test_a_redirect_within_the_allowed_scheme_is_followed(server):
    with serving() as other:
        server.plan = (f"->{other.url}",)
        assert fetch.fetch(recipe_for(server.url))[0].read_bytes() == FASTA


@pytest.mark.parametrize("right", [True, False])
def test_a_hash_that_the_server_names_is_compared_with_what_came(server, right):
    server.stated = f'"{HASH if right else "0" * 64}"'
    for plan in (("good",), (f"->{server.url}", "good")):
        server.plan, server.served = plan * fetch.TRIES, 0
        recipe = recipe_for(f"{server.url}?{len(plan)}", None)
        if right:
            assert fetch.fetch(recipe)[0].read_bytes() == FASTA
            continue
        with pytest.raises(DataError, match=f"its sha256 is {HASH}, the server names 0000"):
            fetch.fetch(recipe)
        assert leftovers(recipe) == []


@pytest.mark.parametrize("stated", ['"5d41402abc4b2a76b9719d911017c592"', "W/", "x" * 64])
def test_a_header_that_is_no_sha256_is_not_compared(server, stated):
    server.stated = stated
    assert fetch.fetch(recipe_for(server.url, None))[0].read_bytes() == FASTA


def test_plain_http_is_refused_before_a_byte_is_asked_for(server, monkeypatch):
    monkeypatch.setattr(fetch, "SCHEMES", ("https",))
    with pytest.raises(DataError, match=r"http:// is not https"):
        fetch.fetch(recipe_for(server.url))
    assert server.served == 0


def test_no_server_is_told_as_no_connection(server):
    with pytest.raises(DataError, match="no connection"):
        fetch.fetch(recipe_for("http://127.0.0.1:9/genome.fa"))


def test_offline_says_what_is_missing_and_how_to_give_it(server):
    with pytest.raises(DataError) as told:
        build_dna_store(load_recipe("hg38"), offline=True)
    for part in ("hg38.fa.gz of the recipe hg38", "--offline", "https://", "--fasta hg38.fa.gz"):
        assert part in str(told.value)
    assert not (cache_dir() / "downloads").exists()


@pytest.mark.parametrize("pinned", [HASH, None], ids=["pinned", "unpinned"])
def test_a_fetched_file_that_changed_on_disk_is_fetched_again(server, pinned):
    recipe = recipe_for(server.url, pinned)
    (path,) = fetch.fetch(recipe)
    path.write_bytes(FASTA.replace(b"A", b"G"))
    assert fetch.fetch(recipe)[0].read_bytes() == FASTA
    path.write_bytes(b"short")
    with pytest.raises(DataError, match="offline"):
        fetch.fetch(recipe, offline=True)


def test_a_file_without_a_pinned_hash_must_have_the_recipes_contigs_or_is_forgotten(server):
    recipe = recipe_for(server.url, None)
    assert build_dna_store(recipe).contigs == {"a": 2000}
    server.plan = ("wrong",)
    build_dna_store(recipe)  # still the file that was fetched
    other = recipe.model_copy(update={"contigs": {"a": 2001}})
    with pytest.raises(DataError, match="another assembly"):
        build_dna_store(other)
    assert not fetch.is_present(other.sources[0])


def test_a_recipe_without_a_source_asks_for_a_file():
    with pytest.raises(DataError, match="--fasta"):
        fetch.fetch(Recipe(name="own"))
