// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.OptionalInt;
import org.libdist.internal.dist_kubernetes_options;

/**
 * Names of Kubernetes pods. Values that are not set are read from the environment. Immutable: each method
 * returns a new set of options. A null text is not set.
 */
public final class KubernetesOptions {
    /** Options in which nothing is set. */
    public static final KubernetesOptions DEFAULT = new KubernetesOptions();

    private OptionalInt index = OptionalInt.empty();
    private int numWorkers;
    private int firstIndex;
    private int port;
    private String hostName;
    private String service;
    private String namespace;
    private String domain;

    private KubernetesOptions() {}

    private KubernetesOptions copy() {
        KubernetesOptions copy = new KubernetesOptions();
        copy.index = index;
        copy.numWorkers = numWorkers;
        copy.firstIndex = firstIndex;
        copy.port = port;
        copy.hostName = hostName;
        copy.service = service;
        copy.namespace = namespace;
        copy.domain = domain;
        return copy;
    }

    /**
     * Sets the index of this pod. Without it, JOB_COMPLETION_INDEX or the number at the end of the host name
     * is used.
     */
    public KubernetesOptions index(int index) {
        KubernetesOptions copy = copy();
        copy.index = OptionalInt.of(index);
        return copy;
    }

    /** Sets the number of workers; 0 selects WORLD_SIZE from the environment. */
    public KubernetesOptions numWorkers(int numWorkers) {
        KubernetesOptions copy = copy();
        copy.numWorkers = numWorkers;
        return copy;
    }

    /** Sets the index of the first pod: a StatefulSet's .spec.ordinals.start. */
    public KubernetesOptions firstIndex(int firstIndex) {
        KubernetesOptions copy = copy();
        copy.firstIndex = firstIndex;
        return copy;
    }

    /** Sets the port of every worker; 0 selects the default (8888). */
    public KubernetesOptions port(int port) {
        KubernetesOptions copy = copy();
        copy.port = port;
        return copy;
    }

    /** Sets the host name of this pod, "trainer-2". */
    public KubernetesOptions hostName(String hostName) {
        KubernetesOptions copy = copy();
        copy.hostName = hostName;
        return copy;
    }

    /** Sets the headless service. Without it, addresses use only the host name. */
    public KubernetesOptions service(String service) {
        KubernetesOptions copy = copy();
        copy.service = service;
        return copy;
    }

    /** Sets the namespace of the service; requires a service. */
    public KubernetesOptions namespace(String namespace) {
        KubernetesOptions copy = copy();
        copy.namespace = namespace;
        return copy;
    }

    /** Sets the cluster domain, "cluster.local"; requires a namespace. */
    public KubernetesOptions domain(String domain) {
        KubernetesOptions copy = copy();
        copy.domain = domain;
        return copy;
    }

    dist_kubernetes_options toNative(Uses uses) {
        dist_kubernetes_options options = new dist_kubernetes_options();
        uses.defer(options::delete);
        if (index.isPresent()) {
            options.setHas_index(1);
            options.setIndex(index.getAsInt());
        }
        options.setNum_workers(numWorkers);
        options.setFirst_index(firstIndex);
        options.setPort(port);
        options.setHost_name(Texts.orNull(hostName));
        options.setService(Texts.orNull(service));
        options.setName_space(Texts.orNull(namespace));
        options.setDomain(Texts.orNull(domain));
        return options;
    }
}
