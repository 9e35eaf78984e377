"""docs/moving.md, about moving from another connector, executed against a service that such a connector has used."""

import re
from pathlib import Path

from tests.cli.service import KEY, Service
from tests.support import loopback
from tests.support.pages import ROOT, Walk, blocks, walked

PAGE = ROOT / "docs/moving.md"
ADDRESS = "https://wisetime.com/connect/api"
GROUP = "7c1d9e00-0000-4000-8000-00000000000"
INSTANT = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d(:\d\dZ)?")


class Reader(Walk):
    """A reader of the page who uses the test's service; its URL and all times are shown as on the page."""

    def __init__(self, service: Service, folder: Path) -> None:
        environ = {"SYNCENGINE_API_KEY": KEY, "SYNCENGINE_BASE_URL": service.url}
        super().__init__(folder, environ, ends={"syncengine time audit --since 30d": 1})
        self._url = service.url

    def shown(self, output: str) -> str:
        same = INSTANT.sub(lambda found: f"2026-05-04{found[1]}09:30{':00Z' * bool(found[2])}", output)
        return same.replace(self._url, ADDRESS)


def test_who_moves_by_the_page_posts_nothing_twice(service: Service, tmp_path: Path) -> None:
    """The old connector has acknowledged one group, only delivered another, and never seen a third."""
    posted = enumerate(("HAR-1001", "HAR-1002", "OFFICE"), 1)
    service.post(groups=[{"groupId": f"{GROUP}{n}", "tag": tag, "totalDurationSecs": 3600 * n} for n, tag in posted])
    first = {"timeGroupId": f"{GROUP}1", "status": "SUCCESS"}
    sent = loopback.post(f"{service.url}/postedtime/status", json=first, headers={"x-api-key": KEY})
    assert sent.status_code == 200
    (tmp_path / "tags.csv").write_text(blocks(PAGE, "csv")[0], encoding="utf-8")
    text, walk = walked(PAGE, Reader(service, tmp_path))
    assert walk == text
    assert (tmp_path / "out/time.jsonl").read_text(encoding="utf-8") == '{"matter":"OFFICE","hours":3}\n'
