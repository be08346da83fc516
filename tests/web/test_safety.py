"""Who may see and change what: by name, by origin, by form, by token; and what a browser is told it may load."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from dragoman.client.app import App
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for
from tests.web.conftest import daemon_with_page
from tests.web.visitor import Visitor

TOKEN, READ_TOKEN = "operator-token-0123456789", "reader-token-0123456789"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    settings = (f"web.token={TOKEN}", f"web.read_token={READ_TOKEN}", "web.hosts=broker.example")
    broker = daemon_with_page(tmp_path_factory.mktemp("guarded") / "data", *settings).start()
    with App(f"file:{broker.data}") as app:
        app.send_sync("mail", b"x")
    yield broker
    broker.kill()


def is_paused(broker: Daemon, queue: str) -> bool:
    return bool(broker.ask("queues", prefix=queue)["queues"][0]["is_paused"])


def logged_in(broker: Daemon, token: str) -> Visitor:
    visitor = Visitor(broker)
    answer = visitor.post("/login", {"token": token, "to": "/queues"})
    assert (answer.status, answer.header("Location")) == (303, "/queues")
    return visitor


@pytest.fixture
def queue(broker: Daemon, app: App) -> str:
    app.send_sync("calm", b"x")
    broker.ask("resume", queue="calm")
    return "calm"


HOSTS = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example:8484",
    "10.0.0.1",
    "",
    "a b",
    "[::1",
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_that_is_not_ours_is_refused_so_that_rebinding_gets_nothing(visitor: Visitor, host: str) -> None:
    answer = visitor.get("/", Host=host)
    assert answer.status in (400, 421)
    assert "dragoman" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "LOCALHOST:80", "[::1]:8484", "127.9.9.9", "x.localhost"])
def test_every_name_of_loopback_is_ours(visitor: Visitor, host: str) -> None:
    assert visitor.get("/", Host=host).status == 200


def test_a_name_that_the_settings_allow_is_ours(guarded: Daemon, visitor: Visitor) -> None:
    assert Visitor(guarded).get("/login", Host="broker.example:80").status == 200
    assert visitor.get("/", Host="broker.example").status == 421


@pytest.mark.parametrize("path", ["/", "/queues", "/static/page.js", "/nowhere", "/metrics"])
def test_every_answer_says_that_nothing_but_our_own_files_may_be_loaded(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    policy = answer.header("Content-Security-Policy")
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.header("X-Content-Type-Options") == "nosniff"


def test_no_page_has_anything_inline_or_from_elsewhere(visitor: Visitor) -> None:
    for path in ("/", "/queues", "/workers", "/quarantine", "/schedules", "/crossings", "/search?q=x", "/login"):
        html = visitor.page(path)
        assert not re.search(r"<script(?![^>]* src=)", html), path
        assert not re.search(r"\son\w+=|\sstyle=|<style", html), path
        assert set(re.findall(r"""(?:src|href|action)=["'](https?:)?//""", html)) == set(), path


def test_an_action_needs_post(broker: Daemon, visitor: Visitor, queue: str) -> None:
    assert visitor.get(f"/do/pause?queue={queue}").status == 404
    assert visitor.ask("PUT", f"/do/pause?queue={queue}").status == 405
    assert not is_paused(broker, queue)


def test_a_form_without_the_token_of_its_session_changes_nothing(broker: Daemon, visitor: Visitor, queue: str) -> None:
    token = visitor.csrf_token()
    stranger = Visitor(broker)
    for fields in ({}, {"csrf_token": ""}, {"csrf_token": "0" * 64}, {"csrf_token": stranger.csrf_token()}):
        answer = visitor.post(f"/do/pause?queue={queue}", fields)
        assert answer.status == 403
        assert "load the page again" in answer.text
    assert not is_paused(broker, queue)
    assert visitor.post(f"/do/pause?queue={queue}", {"csrf_token": token}).status == 303
    assert is_paused(broker, queue)


ORIGINS = ["http://evil.example", "null", "http://127.0.0.1:1", "https://evil.example:443", "http://[", ""]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_form_of_another_site_changes_nothing_even_with_our_token(
    broker: Daemon, visitor: Visitor, queue: str, origin: str
) -> None:
    answer = visitor.post(f"/do/pause?queue={queue}", {"csrf_token": visitor.csrf_token()}, Origin=origin)
    assert (answer.status, answer.text) == (403, "this form comes from another site\n")
    assert not is_paused(broker, queue)


def test_a_browser_that_says_cross_site_is_believed(broker: Daemon, visitor: Visitor, queue: str) -> None:
    answer = visitor.post(f"/do/pause?queue={queue}", {"csrf_token": visitor.csrf_token()}, Sec_Fetch_Site="cross-site")
    assert answer.status == 403
    assert not is_paused(broker, queue)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/", "/stream?at=/", "/static/mark.svg", "/confirm/purge?queue=calm"])
def test_another_sites_scripts_and_images_get_nothing_and_its_links_lead_here(
    visitor: Visitor, queue: str, site: str, path: str
) -> None:
    for mode in ("no-cors", "cors", "websocket"):
        assert visitor.get(path, Sec_Fetch_Site=site, Sec_Fetch_Mode=mode).status == 403
    if not path.startswith("/stream"):
        assert visitor.get(path, Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate").status == 200


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/readyz"])
def test_a_probe_is_answered_whichever_site_started_it(visitor: Visitor, path: str) -> None:
    assert visitor.get(path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors").status == 200


@pytest.mark.parametrize("odd", ['odd={"a": [1, 2]}', "a[0]=1", "odd", 'prefs="x', "a b=c"])
def test_another_programs_odd_cookie_ends_no_session(visitor: Visitor, odd: str) -> None:
    token = visitor.csrf_token()
    name = f"dragoman-{visitor.port}"
    cookie = f"{odd}; {name}={visitor.cookies[name]}"
    answer = visitor.get("/confirm/drain_queue?queue=x", Cookie=cookie)
    assert answer.header("Set-Cookie") == ""
    assert f'value="{token}"' in answer.text


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(visitor: Visitor) -> None:
    cookie = visitor.get("/").header("Set-Cookie")
    assert cookie.startswith(f"dragoman-{visitor.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


def test_a_forged_cookie_is_nobodys(guarded: Daemon) -> None:
    visitor = Visitor(guarded)
    name = f"dragoman-{visitor.port}"
    for value in (
        "operator.9999999999.00.00",
        "",
        "x",
        "...",
        logged_in(guarded, READ_TOKEN).cookies[name].replace("reader", "operator"),
    ):
        answer = visitor.get("/", Cookie=f"{name}={value}")
        assert (answer.status, answer.header("Location")) == (303, "/login?to=%2F"), value


def test_a_form_that_is_too_large_or_unreadable_is_refused(visitor: Visitor) -> None:
    assert visitor.post("/do/pause", {"csrf_token": visitor.csrf_token(), "queue": "x" * 70_000}).status == 413
    assert visitor.ask("POST", "/do/pause", b"\xff\xfe", {"Origin": visitor.origin}).status == 400


def test_an_action_that_is_not_there_or_lacks_what_it_is_about_is_refused(visitor: Visitor) -> None:
    assert visitor.do("/do/stop").status == 404
    assert visitor.do("/do/backup").status == 404
    assert visitor.do("/do/pause").status == 400
    assert visitor.do("/do/quarantine_drop").status == 400


@pytest.mark.parametrize(
    "back", ["//evil.example/", "https://evil.example/", "/\\evil.example", "evil", "/\r\nX-Bad: 1"]
)
def test_an_action_leads_back_to_a_page_of_ours_only(visitor: Visitor, queue: str, back: str) -> None:
    answer = visitor.do(f"/do/pause?queue={queue}", back=back)
    assert (answer.status, answer.header("Location")) == (303, "/")
    assert answer.header("X-Bad") == ""


def test_with_tokens_nothing_is_seen_without_one(guarded: Daemon) -> None:
    visitor = Visitor(guarded)
    assert visitor.get("/queues?prefix=a").header("Location") == "/login?to=%2Fqueues%3Fprefix%3Da"
    assert visitor.get("/metrics").status == 401
    assert visitor.get("/stream?at=/").status == 401
    assert visitor.post("/do/pause?queue=mail").status == 401
    assert visitor.get("/static/page.css").status == 200
    assert visitor.get("/livez").status == 200


def test_a_wrong_token_is_reported_and_gets_no_session(guarded: Daemon) -> None:
    visitor = Visitor(guarded)
    for token in ("", "wrong", TOKEN[:-1], TOKEN + "x", "\udcff"):
        answer = visitor.post("/login", {"token": token.encode("utf-8", "surrogateescape").decode("latin-1")})
        assert answer.status == 403
        assert "not a token of this broker" in answer.text
    assert visitor.get("/").status == 303


def test_the_operators_token_may_change_things(guarded: Daemon) -> None:
    visitor = logged_in(guarded, TOKEN)
    assert visitor.do("/do/pause?queue=mail").status == 303
    assert is_paused(guarded, "mail")
    assert visitor.do("/do/resume?queue=mail").status == 303


def test_the_read_token_sees_everything_and_changes_nothing(guarded: Daemon) -> None:
    visitor = logged_in(guarded, READ_TOKEN)
    html = visitor.page("/queues")
    assert "mail" in html
    assert "Pause" not in html
    answer = visitor.post("/do/pause?queue=mail", {"csrf_token": visitor.csrf_token()})
    assert answer.status == 403
    assert "the read token sees everything and changes nothing" in answer.text
    assert not is_paused(guarded, "mail")


def test_a_bearer_needs_neither_cookie_nor_csrf_token(guarded: Daemon) -> None:
    program = Visitor(guarded)
    assert program.get("/metrics", Authorization=f"Bearer {READ_TOKEN}").status == 200
    assert program.get("/", Authorization="Bearer nonsense").status == 401
    read = program.post("/do/pause?queue=mail", {}, Authorization=f"Bearer {READ_TOKEN}")
    assert read.status == 403
    answer = program.post("/do/pause?queue=mail", {}, Authorization=f"Bearer {TOKEN}")
    assert answer.json["result"]["is_paused"] is True
    program.post("/do/resume?queue=mail", {}, Authorization=f"Bearer {TOKEN}")
    assert not program.cookies


def test_who_logs_out_is_nobody_again(guarded: Daemon) -> None:
    visitor = logged_in(guarded, READ_TOKEN)
    answer = visitor.do("/logout")
    assert (answer.status, answer.header("Location")) == (303, "/login")
    assert visitor.get("/").status == 303


def test_tokens_are_shown_nowhere(guarded: Daemon) -> None:
    told = [
        guarded.ask("config")["toml"],
        str(guarded.ask("status")),
        guarded.process.log(),
        guarded.card_file.read_text(),
    ]
    told += [logged_in(guarded, TOKEN).page(path) for path in ("/", "/queues")]
    assert "# token =" in told[0]
    for text in told:
        assert TOKEN not in text
        assert READ_TOKEN not in text


def test_the_pages_process_has_no_token_on_its_command_line(guarded: Daemon) -> None:
    import psutil

    children = psutil.Process(guarded.pid).children()
    pages = [child for child in children if "dragoman.web.process" in child.cmdline()]
    assert len(pages) == 1
    assert not [word for word in pages[0].cmdline() if TOKEN in word]
    assert pages[0].nice() == 10


def test_no_token_no_door_for_other_machines() -> None:
    from dragoman.errors import BindNotLoopback
    from dragoman.runtime.config import Flags, load

    everywhere = ("http=tcp://0.0.0.0:0",)
    with pytest.raises(BindNotLoopback, match=r"set web\.token"):
        load(flags=Flags(listen=everywhere, settings=("security.insecure=true",)))
    assert load(flags=Flags(listen=everywhere, settings=(f"web.token={TOKEN}",))).web.token == TOKEN


def test_a_token_that_can_be_guessed_is_refused_and_not_printed() -> None:
    from dragoman.errors import ConfigError
    from dragoman.runtime.config import Flags, load

    with pytest.raises(ConfigError, match="at least 16 characters") as caught:
        load(flags=Flags(settings=("web.token=hunter2",)))
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"another text than web\.token"):
        load(flags=Flags(settings=(f"web.token={TOKEN}", f"web.read_token={TOKEN}")))


def test_a_broker_that_is_killed_leaves_its_port_to_the_next(tmp_path_factory: pytest.TempPathFactory) -> None:
    broker = daemon_with_page(tmp_path_factory.mktemp("killed") / "data").start()
    try:
        for _ in range(3):
            assert Visitor(broker).get("/").status == 200
            broker.process.kill_alone()
            broker.start()
        wait_for("the page", lambda: Visitor(broker).get("/").status == 200)
        assert not broker.lines("LISTENER OFF")
    finally:
        broker.kill()
