// SPDX-License-Identifier: Apache-2.0

/** The metrics of strategies for the Prometheus Java client. */
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"})
module org.libdist.prometheus {
    requires transitive org.libdist;
    requires transitive io.prometheus.metrics.model;

    exports org.libdist.prometheus;
}
