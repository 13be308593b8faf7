"""Settings of all services, from environment variables (`TAMIS_…`) and YAML files.

Every service uses the same names, and secrets are never printed. A secret `TAMIS_X` may be in a file, whose
path is then the value of `TAMIS_X_FILE`:

    TAMIS_KAFKA_BOOTSTRAP=broker:9093 TAMIS_KAFKA_SECURITY_PROTOCOL=SASL_SSL
    TAMIS_KAFKA_SASL_MECHANISM=SCRAM-SHA-512 TAMIS_KAFKA_SASL_USERNAME=edge TAMIS_KAFKA_SASL_PASSWORD=…
    tamis edge --config edge.yaml
"""

from tamis.settings.common import ServiceSettings, TableSettings, load
from tamis.settings.kafka import KafkaSettings

__all__ = ["KafkaSettings", "ServiceSettings", "TableSettings", "load"]
