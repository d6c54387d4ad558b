// A round's page: the scrubber and its rows, and proofs that this browser checks by itself.
(function () {
  "use strict";

  // ---- the scrubber ----
  function mark(number) {
    document.querySelectorAll(".events tr.now").forEach(function (row) { row.classList.remove("now"); });
    var row = document.getElementById("e-" + number);
    if (!row) return;
    row.classList.add("now");
    var room = document.getElementById("timeline");
    if (!room) return;
    var box = row.getBoundingClientRect(), around = room.getBoundingClientRect();
    if (box.top < around.top + 40) room.scrollTop += box.top - around.top - 60;
    else if (box.bottom > around.bottom) room.scrollTop += box.bottom - around.bottom + 20;
  }
  document.addEventListener("input", function (event) {
    if (event.target.id === "scrubber") mark(event.target.value);
  });
  document.addEventListener("click", function (event) {
    var at = event.target.closest("button.at");
    var scrubber = document.getElementById("scrubber");
    if (!at || !scrubber) return;
    scrubber.value = at.dataset.number;
    scrubber.dispatchEvent(new Event("input", { bubbles: true }));
  });
  document.addEventListener("DOMContentLoaded", function () {
    var scrubber = document.getElementById("scrubber");
    if (scrubber) mark(scrubber.value);
  });
  var first = document.getElementById("scrubber");
  if (first) mark(first.value);

  // ---- bytes ----
  function fromHex(text) {
    var bytes = new Uint8Array(text.length / 2);
    for (var at = 0; at < bytes.length; at++) bytes[at] = parseInt(text.substr(2 * at, 2), 16);
    return bytes;
  }
  function toHex(bytes) {
    return Array.from(bytes, function (one) { return one.toString(16).padStart(2, "0"); }).join("");
  }
  function fromBase64(text) {
    return Uint8Array.from(atob(text), function (one) { return one.charCodeAt(0); });
  }
  function joined(parts) {
    var size = parts.reduce(function (sum, one) { return sum + one.length; }, 0);
    var whole = new Uint8Array(size), at = 0;
    parts.forEach(function (one) { whole.set(one, at); at += one.length; });
    return whole;
  }
  function big(number, bytes) { // unsigned, most significant byte first
    var out = new Uint8Array(bytes);
    for (var at = bytes - 1; at >= 0; at--) { out[at] = number % 256; number = Math.floor(number / 256); }
    return out;
  }
  async function sha256(parts) {
    return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(parts)));
  }

  // ---- what docs/seals.md says, once more and on its own ----
  async function chainHash(entry) {
    var subject = new TextEncoder().encode(entry.subject);
    var headers = fromBase64(entry.headers), payload = fromBase64(entry.payload);
    return sha256([
      fromHex(entry.previous_head), big(entry.sequence, 8),
      big(subject.length, 4), big(headers.length, 4), big(payload.length, 4),
      subject, headers, payload
    ]);
  }
  async function rootFrom(leaf, index, size, path) { // RFC 9162, 2.1.3.2: the tree is RFC 6962's
    var fn = index, sn = size - 1, hash = leaf, one = new Uint8Array([1]);
    for (var at = 0; at < path.length; at++) {
      if (sn === 0) return null;
      var node = fromHex(path[at]);
      if (fn % 2 === 1 || fn === sn) {
        hash = await sha256([one, node, hash]);
        while (fn % 2 === 0 && fn !== 0) { fn = Math.floor(fn / 2); sn = Math.floor(sn / 2); }
      } else {
        hash = await sha256([one, hash, node]);
      }
      fn = Math.floor(fn / 2); sn = Math.floor(sn / 2);
    }
    return sn === 0 ? hash : null;
  }
  async function entryHolds(entry, seal) {
    var head = await chainHash(entry);
    if (toHex(head) !== entry.head) return false;
    var leaf = await sha256([new Uint8Array([0]), big(entry.sequence, 8), head]);
    var root = await rootFrom(leaf, entry.sequence - 1, seal.size, entry.path);
    return root !== null && toHex(root) === seal.root;
  }
  async function sealHolds(cell, seal) {
    var text = "sabot log head v1\n" + cell + "\n" + seal.size + "\n" + seal.root + "\n" + seal.head + "\n";
    var raw = fromHex(seal.public_key);
    var named = toHex(await sha256([raw])).slice(0, 16) === seal.key_id;
    var key = await crypto.subtle.importKey("raw", raw, { name: "Ed25519" }, false, ["verify"]);
    return named && await crypto.subtle.verify(
      { name: "Ed25519" }, key, fromHex(seal.signature), new TextEncoder().encode(text));
  }

  // ---- the button ----
  async function prove(button) {
    var words = JSON.parse(button.dataset.words), place = document.getElementById("proven");
    function say(text, good) {
      place.textContent = text;
      place.className = good ? "done" : "refused";
    }
    if (!window.crypto || !crypto.subtle) { say(words.insecure, false); return; }
    var answer = await fetch(button.dataset.proofs, { headers: { "accept": "application/json" } });
    if (!answer.ok || answer.redirected) { say(words.none, false); return; }
    var told = await answer.json(), wrong = [];
    if (!told.entries.length) { say(words.unsealed, false); return; }
    var signed = await sealHolds(told.cell, told.seal);
    for (var at = 0; at < told.entries.length; at++) {
      var entry = told.entries[at], holds = signed && await entryHolds(entry, told.seal);
      if (!holds) wrong.push(entry.sequence);
      document.querySelectorAll('tr[data-sequence="' + entry.sequence + '"] .proof').forEach(function (mark) {
        mark.textContent = holds ? "✓" : "✗";
        mark.classList.toggle("wrong", !holds);
      });
    }
    var facts = { count: told.entries.length, size: told.seal.size, key: told.seal.key_id, beyond: told.beyond.length, wrong: wrong.join(", ") };
    var text = !signed ? words.unsigned : wrong.length ? words.wrong : told.beyond.length ? words.partly : words.right;
    say(text.replace(/\{(\w+)\}/g, function (_, name) { return facts[name]; }), signed && !wrong.length);
  }
  document.addEventListener("click", function (event) {
    if (event.target.id !== "prove") return;
    event.target.disabled = true;
    prove(event.target).finally(function () { event.target.disabled = false; });
  });
})();
