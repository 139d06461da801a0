// Runs before the first paint, so that no other colours flash up. "auto" follows the system.
(() => {
  const CHOICES = ["auto", "light", "dark"];
  const KEY = "adatkg-theme";
  let choice = "auto";
  try {
    choice = localStorage.getItem(KEY) ?? "auto";
  } catch {
    /* storage is switched off: the choice lasts as long as the page */
  }
  if (!CHOICES.includes(choice)) choice = "auto";

  const apply = () => {
    document.documentElement.dataset.theme = choice;
    // The browser's own canvas, which is there before any style.
    document.querySelector("meta[name=color-scheme]").content = choice === "auto" ? "light dark" : choice;
  };

  const say = (button) => {
    button.textContent = `Theme: ${choice}`;
    window.dispatchEvent(new Event("themechange"));
  };

  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    window.dispatchEvent(new Event("themechange"));
  });
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    say(button);
    button.addEventListener("click", () => {
      choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
      try {
        localStorage.setItem(KEY, choice);
      } catch {
        /* as above */
      }
      apply();
      say(button);
    });
  });
})();
