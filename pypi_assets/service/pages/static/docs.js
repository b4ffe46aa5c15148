"use strict";

/* Shows the operations of the document, and lets people try them. Without scripts, the page keeps its table. */
SwaggerUIBundle({
  url: document.getElementById("api").dataset.document,
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  filter: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null, // no request leaves this service
});
if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark-mode");
