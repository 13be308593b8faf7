# Stand-in for the image apache/kafka: the jars of the embedded broker with the two scripts that Compose runs. The build's
# context is the folder `.jars` of the repository.
FROM python:3.11-slim
RUN mkdir -p /usr/share/man/man1 && apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home appuser && install -d -o appuser /var/lib/kafka/data && mkdir -p /opt/kafka/bin
COPY broker /opt/kafka/libs/
RUN printf '#!/bin/sh\nexec java -Xmx256m -cp "/opt/kafka/libs/*" kafka.tools.StorageTool "$@"\n' > /opt/kafka/bin/kafka-storage.sh \
 && printf '#!/bin/sh\nexec java ${KAFKA_HEAP_OPTS:--Xmx512m} -cp "/opt/kafka/libs/*" kafka.Kafka "$@"\n' > /opt/kafka/bin/kafka-server-start.sh \
 && chmod +x /opt/kafka/bin/*.sh
USER appuser
VOLUME ["/var/lib/kafka/data"]
CMD ["/opt/kafka/bin/kafka-server-start.sh"]
