"""The scalar through which a stream enters a condition. Sums and products are regrouped to find it."""
