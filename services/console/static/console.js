// The console's own behaviour: clocks, activity, shortcuts. No page needs it to be read.
(function () {
  "use strict";

  // ---- what is left of a betting window ----
  function tick() {
    document.querySelectorAll("[data-until]").forEach(function (place) {
      var left = Number(place.dataset.until) - Date.now();
      place.textContent = left > 0 ? (left / 1000).toFixed(1) + " s" : "";
    });
  }
  window.setInterval(tick, 100);

  // ---- a page that could not be shown, for a reason that may be over in a moment ----
  var again = document.querySelector("[data-again]");
  if (again) window.setTimeout(function () { window.location.reload(); }, Number(again.dataset.again));

  // ---- somebody is there: at most every 20 seconds the server hears of it ----
  var toldAt = 0;
  function active() {
    var now = Date.now();
    if (!document.body.dataset.active || now - toldAt < 20000) return;
    toldAt = now;
    fetch("/active", { headers: { "hx-request": "true" } }).then(function (answer) {
      var away = answer.headers.get("hx-redirect");
      if (away) window.location.assign(away);
    }).catch(function () { /* the fleet's own trouble shows elsewhere */ });
  }
  ["keydown", "pointerdown", "wheel"].forEach(function (name) {
    document.addEventListener(name, active, { passive: true });
  });

  // ---- a session that locked itself ----
  document.addEventListener("htmx:sseMessage", function (event) {
    if (event.detail && event.detail.type === "locked") lockNow();
  });
  document.addEventListener("htmx:sseOpen", function (event) {
    var source = event.detail && event.detail.source;
    if (source) source.addEventListener("locked", lockNow);
  });
  function lockNow() {
    window.location.assign("/unlock?next=" + encodeURIComponent(window.location.pathname));
  }

  // ---- shortcuts: "/" looks for something, g and a letter goes somewhere ----
  var went = 0;
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    var at = event.target;
    if (at && at.closest && at.closest("input:not([type=range]), select, textarea")) return;
    if (event.key === "/") {
      var seek = document.getElementById("seek");
      if (seek) { event.preventDefault(); seek.focus(); }
    } else if (event.key === "g") {
      went = Date.now();
    } else if (Date.now() - went < 1500) {
      went = 0;
      var link = document.querySelectorAll(".top nav a")[Number(event.key) - 1];
      if (link) { event.preventDefault(); link.click(); }
    }
  });
})();

// An order that was answered is over: the next one of the same form is another one, with another id
// (UUIDv7). One whose fate is unknown keeps its id, so that sending it again is the same order.
document.addEventListener("htmx:afterRequest", function (event) {
  "use strict";
  var form = event.target.closest && event.target.closest("form.order"), status = event.detail.xhr ? event.detail.xhr.status : 0;
  if (!form || status < 200 || status >= 500) return;
  var field = form.querySelector("input[name=request_id]"), bytes = crypto.getRandomValues(new Uint8Array(16)), now = Date.now();
  for (var at = 5; at >= 0; at--) { bytes[at] = now % 256; now = Math.floor(now / 256); }
  bytes[6] = bytes[6] & 0x0f | 0x70; bytes[8] = bytes[8] & 0x3f | 0x80;
  var hex = Array.from(bytes, function (one) { return one.toString(16).padStart(2, "0"); }).join("");
  field.value = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
});

// Parts of a page come anew while somebody works with them: what was unfolded or filled in stays so,
// as long as it is for the same round.
(function () {
  "use strict";
  var kept = new WeakMap();
  function nameOf(form) {
    var round = form.querySelector("input[name=round_id]"), index = form.querySelector("input[type=hidden][name=index]");
    return [form.dataset.order, round ? round.value : "", index ? index.value : ""].join(" ");
  }
  function fields(form) {
    return form.querySelectorAll("input:not([type=hidden]), select, textarea");
  }
  document.addEventListener("htmx:sseBeforeMessage", function (event) {
    var held = { folds: [], forms: {} };
    event.target.querySelectorAll("details[data-fold][open]").forEach(function (one) { held.folds.push(one.dataset.fold); });
    event.target.querySelectorAll("form.order").forEach(function (form) {
      held.forms[nameOf(form)] = Array.from(fields(form), function (one) { return one.type === "checkbox" ? one.checked : one.value; });
    });
    kept.set(event.target, held);
  });
  document.addEventListener("htmx:sseMessage", function (event) {
    var held = kept.get(event.target);
    if (!held) return;
    held.folds.forEach(function (fold) {
      var one = event.target.querySelector('details[data-fold="' + fold + '"]');
      if (one) one.open = true;
    });
    event.target.querySelectorAll("form.order").forEach(function (form) {
      var values = held.forms[nameOf(form)];
      if (values) fields(form).forEach(function (one, at) {
        if (one.type === "checkbox") one.checked = Boolean(values[at]); else if (values[at]) one.value = values[at];
      });
    });
  });
})();
