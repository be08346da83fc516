// Change one tree into another only where they differ, so that focus, selection and opened details stay.

export function become(old, fresh) {
  const present = [...old.childNodes];
  const wanted = [...fresh.childNodes];
  wanted.forEach((node, at) => {
    const now = present[at];
    if (now === undefined) old.append(node);
    else if (isLike(now, node)) renew(now, node);
    else now.replaceWith(node);
  });
  for (const node of present.slice(wanted.length)) node.remove();
}

function isLike(now, node) {
  if (now.nodeType !== node.nodeType || now.nodeName !== node.nodeName) return false;
  return now.nodeType !== Node.ELEMENT_NODE || now.dataset.row === node.dataset.row;
}

function renew(now, node) {
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.data !== node.data) now.data = node.data;
    return;
  }
  for (const { name } of [...now.attributes]) {
    if (!node.hasAttribute(name) && !(name === "open" && now.nodeName === "DETAILS")) now.removeAttribute(name);
  }
  for (const { name, value } of node.attributes) {
    if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
  if (now.nodeName !== "INPUT" && now.nodeName !== "SELECT") become(now, node);
}
