// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.OptionalInt;
import org.libdist.internal.dist_kubernetes_options;

/**
 * What the names of Kubernetes' pods say. What is not given is read of the environment. Immutable: each
 * method gives another set of options, and a null text is one that is not given.
 */
public final class KubernetesOptions {
    /** Nothing is given. */
    public static final KubernetesOptions NONE = new KubernetesOptions();

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

    /** Of this pod; without it as the environment says, or the number at the end of the host's name. */
    public KubernetesOptions index(int index) {
        KubernetesOptions copy = copy();
        copy.index = OptionalInt.of(index);
        return copy;
    }

    /** 0: WORLD_SIZE of the environment. */
    public KubernetesOptions numWorkers(int numWorkers) {
        KubernetesOptions copy = copy();
        copy.numWorkers = numWorkers;
        return copy;
    }

    /** Of the pods: a StatefulSet's .spec.ordinals.start. */
    public KubernetesOptions firstIndex(int firstIndex) {
        KubernetesOptions copy = copy();
        copy.firstIndex = firstIndex;
        return copy;
    }

    /** Of every worker; 0: 8888. */
    public KubernetesOptions port(int port) {
        KubernetesOptions copy = copy();
        copy.port = port;
        return copy;
    }

    /** Of this pod, "trainer-2". */
    public KubernetesOptions hostName(String hostName) {
        KubernetesOptions copy = copy();
        copy.hostName = hostName;
        return copy;
    }

    /** The headless service; without it pods are found by their host's name alone. */
    public KubernetesOptions service(String service) {
        KubernetesOptions copy = copy();
        copy.service = service;
        return copy;
    }

    /** Of the service, with it alone. */
    public KubernetesOptions namespace(String namespace) {
        KubernetesOptions copy = copy();
        copy.namespace = namespace;
        return copy;
    }

    /** Of the Kubernetes cluster, "cluster.local", with a namespace. */
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
