// Faults in the layout of a page, as a list of texts.
(() => {
  const found = [];
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over > 0) found.push(`${over} px wider than the window`);
  for (const svg of document.querySelectorAll("svg")) {
    if (svg.getBoundingClientRect().width === 0) continue;
    const texts = [...svg.querySelectorAll("text")];
    const boxes = texts.map((text) => text.getBoundingClientRect());
    texts.forEach((text, i) => {
      const size = parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
      if (size < 10) found.push(`${size} px: ${text.textContent}`);
      if (boxes[i].left < 0 || boxes[i].right > innerWidth) found.push(`outside: ${text.textContent}`);
      boxes.slice(0, i).forEach((other, j) => {
        const apart = other.right <= boxes[i].left || boxes[i].right <= other.left
          || other.bottom - 3 <= boxes[i].top || boxes[i].bottom - 3 <= other.top;
        if (!apart) found.push(`over one another: ${texts[j].textContent}, ${text.textContent}`);
      });
    });
  }
  return found;
})()
