"""A self-contained page that plays a widget's ESM: no kernel, no network, one file."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>:root{{color-scheme:light dark}} body{{max-width:1280px;margin:16px auto;padding:0 12px}}
{css}</style></head><body><div id="view"></div><script type="module">
const state = {state}, heard = {{}};
const model = {{
  get: (key) => state[key],
  set(key, value) {{
    if (state[key] === value) return;
    state[key] = value;
    for (const call of heard["change:" + key] || []) call();
  }},
  on(event, call) {{ (heard[event] ||= []).push(call); }},
  off() {{}}, save_changes() {{}}, send() {{}},
}};
const source = new Blob([{esm}], {{ type: "text/javascript" }});
const {{ default: widget }} = await import(URL.createObjectURL(source));
await widget.render({{ model, el: document.getElementById("view") }});
</script></body></html>
"""


def literal(value) -> str:
    """A JavaScript literal that cannot end the script element around it."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")


def write(path, title: str, esm: str, css: str, state: dict) -> None:
    """Write the page. `state` holds the widget's traits by name."""
    text = PAGE.format(title=escape(title), css=css, state=literal(state), esm=literal(esm))
    Path(path).write_text(text, encoding="utf-8")
