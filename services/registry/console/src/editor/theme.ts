/** Colours of the editor. They are the variables of the page, so that they follow light and dark. */
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const view = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--panel)", border: "1px solid var(--edge)", borderRadius: "4px" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "14px", lineHeight: "1.5" },
  // The gutter is as high as the text, and so both have the least height.
  ".cm-content, .cm-gutter": { minHeight: "14em" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--page)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  ".cm-selectionBackground": { backgroundColor: "var(--chosen)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--chosen)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--chosen)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--edge)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "12em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--link)",
    color: "var(--page)",
  },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "0.8" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
});

const words = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--word)", fontWeight: "600" },
  { tag: tags.typeName, color: "var(--word)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--number)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--muted)", fontStyle: "italic" },
]);

export const theme = [view, syntaxHighlighting(words)];
