"""The alerts service: groups alarms into episodes and notifies the sinks."""
