// Capsules: a file goes to the server as it is, and what it shows comes back.
(function () {
  "use strict";
  document.addEventListener("submit", function (event) {
    var form = event.target, place = document.getElementById("opened");
    if (form.id === "capsule") {
      event.preventDefault();
      var file = form.elements.file.files[0], button = form.querySelector("button");
      if (!file) return;
      button.disabled = true;
      fetch(form.dataset.url, {
        method: "POST", body: file,
        headers: { "content-type": "application/octet-stream", "x-csrf-token": form.dataset.csrf, "hx-request": "true" }
      }).then(function (answer) {
        var away = answer.headers.get("hx-redirect");
        if (away) window.location.assign(away);
        return answer.text();
      }).then(function (text) {
        // The server's own template, everything in it escaped.
        place.innerHTML = text;
        place.scrollIntoView({ block: "nearest" });
      }).catch(function () {
        // The server ends the connection of a file that is too large before it has all of it.
        place.textContent = "";
        var told = document.createElement("p");
        told.className = "refused";
        told.textContent = form.dataset.broken;
        place.appendChild(told);
      }).finally(function () { button.disabled = false; });
    } else if (form.id === "packing") {
      event.preventDefault();
      var partner = form.elements.partner.value.trim();
      window.location.assign("/capsules/of/" + encodeURIComponent(form.elements.round.value.trim()) + (partner ? "?partner=" + encodeURIComponent(partner) : ""));
    }
  });
})();
