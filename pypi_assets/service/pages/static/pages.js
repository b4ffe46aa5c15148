"use strict";
// Completes the text in the search box, copies commands, and shows the age of answers and the address by which this
// browser reaches the service. Pages work without it. All text goes through textContent, and all requests go to this service.

(() => {
  const WAIT_MS = 120;
  const SHOWN_MS = 3000;
  const PLAIN_HOST = /^[a-z0-9.-]+(:[0-9]+)?$/;

  function element(name, attributes, text) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const status = element("p", { class: "hidden", role: "status" });
  document.getElementById("main").append(status);

  // The combobox pattern of the ARIA authoring practices: the focus stays in the input, which names the active option.
  function complete(form) {
    const input = form.querySelector("input[type=search]");
    const list = element("ul", { class: "options", id: "options", role: "listbox", "aria-label": "Suggestions" });
    let timer = 0;
    let request = new AbortController();
    let active = -1;
    list.hidden = true;
    input.after(list);
    for (const [key, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id }))
      input.setAttribute(key, value);

    function activate(place) {
      active = place;
      for (const [index, option] of [...list.children].entries())
        option.setAttribute("aria-selected", String(index === active));
      if (active < 0) {
        input.removeAttribute("aria-activedescendant");
        return;
      }
      input.setAttribute("aria-activedescendant", list.children[active].id);
      list.children[active].scrollIntoView({ block: "nearest" });
    }

    function close() {
      clearTimeout(timer);
      request.abort();
      activate(-1);
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
    }

    function show(results) {
      list.replaceChildren(
        ...results.map((result, index) => {
          const option = element("li", { role: "option", id: `option-${index}` });
          option.append(element("bdi", {}, result.name), " ", element("span", { class: "kind" }, result.kind));
          option.dataset.page = (result.kind === "command" ? "" : form.dataset.prefix) + result.page;
          return option;
        }),
      );
      activate(-1);
      list.hidden = !results.length;
      input.setAttribute("aria-expanded", String(!list.hidden));
      status.textContent = results.length === 1 ? "1 suggestion" : `${results.length} suggestions`;
    }

    async function ask() {
      const text = input.value.trim();
      request.abort();
      request = new AbortController();
      const { signal } = request;
      if (!text) return close();
      try {
        const answer = await fetch(`/v1/completions?q=${encodeURIComponent(text)}`, { signal });
        const results = answer.ok ? (await answer.json()).results : [];
        if (!signal.aborted) show(results);
      } catch {
        if (!signal.aborted) close();
      }
    }

    function open(option) {
      close(); // otherwise the list would still be open when the browser returns to this page
      location.assign(option.dataset.page);
    }

    function move(step) {
      const count = list.children.length + 1; // the input itself is one of the places
      activate(((active + 1 + step + count) % count) - 1);
    }

    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(ask, WAIT_MS);
    });
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" && list.hidden) ask();
      else if (list.hidden) return;
      else if (event.key === "ArrowDown") move(1);
      else if (event.key === "ArrowUp") move(-1);
      else if (event.key === "Escape") close();
      else if (event.key === "Enter" && active >= 0) open(list.children[active]);
      else return;
      event.preventDefault();
    });
    list.addEventListener("pointerdown", (event) => event.preventDefault()); // the input keeps the focus
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) open(option);
    });
    input.setAttribute("aria-expanded", "false");
  }

  async function copy(code) {
    if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent);
    getSelection().selectAllChildren(code); // without TLS, a page of another machine cannot use the clipboard
    if (!document.execCommand("copy")) throw new Error("not copied");
  }

  function offerCopy(code) {
    const button = element("button", { type: "button", class: "copy" }, "Copy");
    button.append(element("span", { class: "hidden" }, ` ${code.textContent}`));
    button.addEventListener("click", async () => {
      const outcome = await copy(code).then(() => "Copied", () => "Not copied");
      status.textContent = button.firstChild.data = outcome;
      setTimeout(() => (button.firstChild.data = "Copy"), SHOWN_MS);
    });
    code.after(button);
  }

  function isTrusted() {
    const loopback = /^(localhost|.*\.localhost|127(\.[0-9]+){3})$/;
    return location.protocol === "https:" || loopback.test(location.hostname);
  }

  function showAddress(code) {
    code.querySelector(".address").textContent = location.origin;
    const trusted = code.querySelector(".trusted");
    if (trusted) trusted.textContent = isTrusted() ? "" : ` --trusted-host ${location.host}`;
  }

  function duration(seconds) {
    for (const [unit, length] of [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]]) {
      const count = Math.floor(seconds / length);
      if (count || length === 1) return `${count} ${unit}${count === 1 ? "" : "s"}`;
    }
  }

  // Ages are computed here, so that the pages of the service stay the same as long as nothing happens.
  function showAges() {
    for (const time of document.querySelectorAll("time[data-age]")) {
      if (!time.nextElementSibling?.matches(".age")) time.after(element("span", { class: "age" }));
      const seconds = Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1000);
      time.nextElementSibling.textContent = ` (${duration(seconds)} ${time.dataset.age})`;
    }
  }

  showAges();
  setInterval(showAges, 10000);
  if (PLAIN_HOST.test(location.host)) document.querySelectorAll("[data-own-address]").forEach(showAddress);
  document.querySelectorAll("code.command").forEach(offerCopy);
  document.querySelectorAll("form.search").forEach(complete);
})();
