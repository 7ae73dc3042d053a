"""The server: what the site was built of, for this machine only, and what is going on."""

import http.client
import json
import socket
import threading

import numpy as np
import pytest

from paritylab import Parity, Setup, Store
from paritylab.site import serve
from paritylab.storage import status
from paritylab.storage.records import Records

SECRET = "not for the network"


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Results among which lie files that are nobody's business, and ways to them."""
    root = tmp_path_factory.mktemp("serve")
    out, site = root / "out", root / "out" / "site"
    (site / "assets").mkdir(parents=True)
    (out / "store").mkdir()
    for path in (root / "secret.txt", out / "secret.txt", site / ".secret.txt", site / ".0123abcd.tmp", site / "old~"):
        path.write_text(SECRET)
    (site / "file.txt").symlink_to(root / "secret.txt")
    (site / "away").symlink_to(root)
    (out / "figure.svg").symlink_to(root / "secret.txt")
    return out


@pytest.fixture(scope="module")
def server(out):
    server = serve.server(out)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(server, path="/", method="GET", host="127.0.0.1"):
    """The answer's status, headers and body; ``host`` may be several or none."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    connection.putrequest(method, path, skip_host=True)
    for each in (host,) if isinstance(host, str) else host:
        connection.putheader("Host", each)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


@pytest.mark.long
def test_the_server_listens_on_loopback_and_shows_the_site(server):
    assert server.server_address[0] == "127.0.0.1"
    status, headers, body = ask(server)
    assert status == 200
    assert b"Live" in body
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    for name, kind in {"/docs/": "text/html", "/docs/index.html?x=1": "text/html", "/assets/site.css": "text/css",
                       "/assets/site.js": "text/javascript", "/evidence/me2025.width.json": "application/json",
                       "/evidence/me2025.width.svg": "image/svg+xml", "/evidence/me2025.width.csv": "text/csv",
                       "/docs/explanation/theory/alignment.html": "text/html"}.items():
        status, headers, body = ask(server, name)
        assert (status, headers.get_content_type()) == (200, kind), name
        assert len(body) == int(headers["Content-Length"]) > 0


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
@pytest.mark.parametrize("path", ["/", "/api/live.json", "/nowhere"])
def test_no_method_gets_past_another_host_name(server, method, path):
    assert ask(server, path, method, host="evil.example")[0] == 403


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", True), ("127.0.0.1:8017", True), ("localhost", True), ("LocalHost:9", True), ("[::1]", True),
        ("[::1]:8017", True), ((), False), ("", False), (":8017", False), ("evil.example", False),
        ("evil.example:8017", False), ("127.0.0.1.evil.example", False), ("localhost.evil.example:80", False),
        ("localhost:80:80", False), ("localhost:evil", False), ("evil@localhost", False), ("[::1", False),
        ("::1", False), ("[::1].evil.example", False), ("0.0.0.0", False), ("localhost evil.example", False),
        (("localhost", "evil.example"), False), (("evil.example", "localhost"), False),
    ],
)
def test_only_names_of_this_machine_are_answered(server, host, allowed):
    assert ask(server, host=host)[0] == (200 if allowed else 403)


def test_requests_without_headers_or_sense_are_refused(server):
    for request, code in ((b"GET /", b"403"), (b"GET / HTTP/1.0", b"403"), (b"nonsense", b"400")):
        with socket.create_connection(server.server_address, timeout=30) as connection:
            connection.sendall(request + b"\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert code in answer[:200], request
        assert b"paritylab" not in answer.split(b"\r\n\r\n", 1)[-1]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "PROPFIND", "get"])
def test_there_is_nothing_but_get_and_head(server, method):
    assert ask(server, method=method)[0] == 501


@pytest.mark.parametrize("path", ["/", "/docs/", "/assets/site.css", "/api/live.json", "/nowhere", "/assets/"])
def test_head_is_get_without_the_body(server, path):
    (code, headers, body), (same, told, nothing) = ask(server, path), ask(server, path, "HEAD")
    assert (same, nothing) == (code, b"")
    assert len(body) > 0
    for each in (headers, told):
        del each["Date"]
    assert told.items() == headers.items()


@pytest.mark.parametrize(
    "path",
    [
        "/assets", "/assets/", "/data/", "/evidence/", "/docs", "/site/", "/secret.txt", "/../secret.txt",
        "/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/assets/../../secret.txt", "/%2fetc/passwd",
        "/..%5csecret.txt", "/assets/..", "/docs/../index.html", "/./index.html", "/index.html/", "/index.html%00",
        "/index.html%00.txt", "/%ff", "/file.txt", "/away/secret.txt", "/away/", "/away/out/secret.txt", "/.secret.txt",
        "/.0123abcd.tmp", "/old~", "/figures/figure.svg", "/store/", "http://127.0.0.1/secret.txt", "*", "index.html",
        "/etc/passwd", "/~root/", "/api/", "/api/live.json/", "/INDEX.HTML", "/%252e%252e/secret.txt",
    ],
)
def test_only_files_of_the_site_are_served(server, path):
    code, _, body = ask(server, path)
    assert code == 404
    assert SECRET.encode() not in body


def test_every_answer_forbids_what_the_pages_do_not_need(server):
    requests = (("/", "GET", "localhost"), ("/api/live.json", "HEAD", "localhost"), ("/nowhere", "GET", "localhost"),
                ("/", "GET", "evil.example"), ("/", "POST", "localhost"))
    for request in requests:
        headers = ask(server, *request)[1]
        policy = headers["Content-Security-Policy"]
        for part in ("default-src 'self'", "frame-ancestors 'none'", "object-src 'none'", "base-uri 'none'"):
            assert part in policy
        told = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        assert told["script-src"] == "'self' 'wasm-unsafe-eval'"  # so that inline scripts are not run
        assert told["worker-src"] == "blob:"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers
        assert "Python" not in headers["Server"]


def test_what_is_going_on_is_told_without_names_of_processes_and_machines(server, out):
    built = json.loads(ask(server, "/api/live.json")[2])
    assert built["sweeps"] == []
    setup = Setup(Parity(n=8, k=2))
    steps = np.full(5, 120)
    block = Records(np.arange(5), np.zeros(5, int), steps, steps, np.ones(5), np.zeros(5))
    Store(out / "store").append(setup.id, setup.to_json(), "jax", 0, block)
    told = {"setup": json.loads(setup.to_json()), "engine": "jax", "seed": 0, "first": 0, "runs": 20}
    jobs = [told | {"setup_id": setup.id}, told | {"setup_id": "feed"}]
    with status.Announcement(out / "store", jobs) as announcement:
        announcement.train([0])
        live = json.loads(ask(server, "/api/live.json")[2])
        assert live["built"] == built["built"]
        (sweep,) = live["sweeps"]
        assert not {"pid", "host"} & set(sweep)
        running, queued = sweep["jobs"]
        assert (running["state"], running["done"], running["wanted"], running["median"]) == ("running", 5, 20, 120)
        assert (queued["state"], queued["done"]) == ("queued", 0)
    after = json.loads(ask(server, "/api/live.json")[2])
    assert after["built"] != built["built"]  # the sweep has ended: the site shows its records
    assert setup.id.encode() in ask(server, "/results.html")[2]


@pytest.mark.parametrize(("error", "told"), [(ConnectionResetError, False), (ValueError, True)])
def test_a_reader_who_leaves_early_is_not_worth_a_word(server, capsys, error, told):
    try:
        raise error
    except error:
        server.handle_error(None, ("127.0.0.1", 1))
    assert (error.__name__ in capsys.readouterr().err) == told


def test_serving_leaves_the_report_on_disk_alone(server, out):
    assert sorted(path.name for path in (out / "site").iterdir()) == sorted(
        [".0123abcd.tmp", ".secret.txt", "assets", "away", "file.txt", "old~"]
    )
