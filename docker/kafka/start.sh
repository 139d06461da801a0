#!/usr/bin/env bash
# Starts the broker: KAFKA_LOG_DIRS becomes log.dirs and so on, as in the official image.
set -euo pipefail

settings=/tmp/server.properties
env | while IFS='=' read -r name value; do
  case $name in
    KAFKA_HEAP_OPTS | KAFKA_OPTS) ;;
    KAFKA_*)
      key=${name#KAFKA_}
      key=${key,,}
      # Three underscores stand for a dash, two for an underscore, one for a dot.
      key=${key//___/-}
      key=${key//__/$'\n'}
      key=${key//_/.}
      echo "${key//$'\n'/_}=$value"
      ;;
  esac
done >"$settings"
if [[ ! -s $settings ]]; then
  echo "start.sh: no KAFKA_* variable is set; docker/compose.yaml shows which are needed" >&2
  exit 1
fi

java=(java -Dlog4j2.level=WARN -cp '/opt/kafka/libs/*')
cluster=${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}
"${java[@]}" kafka.tools.StorageTool format --ignore-formatted --cluster-id "$cluster" --config "$settings"
# shellcheck disable=SC2086  # Options are words.
exec "${java[@]}" ${KAFKA_HEAP_OPTS:--Xmx512m} ${KAFKA_OPTS:-} kafka.Kafka "$settings"
