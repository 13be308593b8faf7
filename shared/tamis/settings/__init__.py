"""Configuration from the environment (`TAMIS_…`), the same names for every service; secrets never print.

TAMIS_KAFKA_BOOTSTRAP=broker:9093 TAMIS_KAFKA_SECURITY_PROTOCOL=SASL_SSL
TAMIS_KAFKA_SASL_MECHANISM=SCRAM-SHA-512 TAMIS_KAFKA_SASL_USERNAME=edge TAMIS_KAFKA_SASL_PASSWORD=…
tamis edge --config edge.yaml
"""

from tamis.settings.kafka import KafkaSettings
from tamis.settings.service import ServiceSettings, load
from tamis.settings.tables import TableSettings

__all__ = ["KafkaSettings", "ServiceSettings", "TableSettings", "load"]
