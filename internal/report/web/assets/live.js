// Puts what the site sends of a run that goes on in the place of what it was. The site made it: nothing is made here.
(() => {
  const state = document.getElementById("live-state");
  const source = new EventSource(state.dataset.from);
  source.addEventListener("open", () => { state.textContent = "This page follows the run."; });
  source.addEventListener("error", () => { state.textContent = "The site does not answer; asking again."; });
  source.addEventListener("part", e => {
    const part = JSON.parse(e.data), old = document.getElementById(part.id);
    if (!old) return;
    old.innerHTML = part.html;
    inZone(old);
  });
  source.addEventListener("over", () => { source.close(); location.reload(); });
})();
