// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** In which order replicas and their logical devices lie in a mesh. */
public enum DeviceOrder {
    /** Rings where they fit, else blocks. */
    AUTO(DistModuleConstants.DIST_DEVICE_ORDER_AUTO),
    /** Each a neighbour of the next; an error where they do not fit. */
    RING(DistModuleConstants.DIST_DEVICE_ORDER_RING),
    /** Blocks. */
    MESH(DistModuleConstants.DIST_DEVICE_ORDER_MESH);

    final int code;

    DeviceOrder(int code) {
        this.code = code;
    }
}
