"""The one scalar through which a stream enters a condition: sums and products are regrouped to find it."""
