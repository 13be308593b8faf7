/** Stands in place of a part of the page that could not be loaded. */
export function NotLoaded({ what }: { what: string }) {
  return (
    <div class="problem" role="alert">
      <p>{what} could not be loaded: the registry has been updated, or it doesn't answer.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload the page
      </button>
    </div>
  );
}
