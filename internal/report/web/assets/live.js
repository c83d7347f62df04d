// Puts what the site sends of a run that goes on in the place of what it was. The site made it: nothing is made here.
(() => {
  const state = document.getElementById("live-state");
  const follow = () => {
    const source = new EventSource(state.dataset.from);
    source.addEventListener("open", () => { state.textContent = "This page follows the run."; });
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) state.textContent = "The site does not answer; asking again.";
      else { // it was sent away, as by a site that just begins: a browser asks again only where nobody answered
        state.textContent = "The site sends nothing of this run now; asking again.";
        setTimeout(follow, 5000);
      }
    });
    source.addEventListener("part", e => {
      const part = JSON.parse(e.data), old = document.getElementById(part.id);
      if (!old) return;
      old.innerHTML = part.html;
      inZone(old);
    });
    source.addEventListener("over", () => { source.close(); location.reload(); });
  };
  follow();
})();
