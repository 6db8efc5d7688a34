#!/bin/bash
# A command of slackwater; or `driver` and `executor`, with which Spark on Kubernetes starts a
# container (Spark's documentation, "Running Spark on Kubernetes"): the chart's SparkApplication.
set -euo pipefail

spark_home() {
    python3 -c 'import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("pyspark").origin))'
}

# What keeps a JVM from writing numbers and times as its machine's country does.
pins() {
    python3 -c 'from streaming.jvm.pins import PINS; print(*PINS)'
}

case "${1:-}" in
driver)
    shift
    export SPARK_SUBMIT_OPTS="${SPARK_SUBMIT_OPTS:-} $(pins)"
    exec tini -s -- spark-submit --deploy-mode client \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
        "$@"
    ;;
executor)
    cd "$(mktemp -d)"  # Spark fetches files into the working folder
    # Spark gives the JVM's options as SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 ...
    readarray -t options < <(env | grep ^SPARK_JAVA_OPT_ | sort -t_ -k4 -n | cut -d= -f2-)
    exec tini -s -- java "${options[@]}" $(pins) \
        "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CLASSPATH:-}:$(spark_home)/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" \
        --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
*)
    exec tini -- slackwater "$@"
    ;;
esac
