// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/** Who reduces values from outside runs. The bits are the same, but for HOST's. */
public enum CrossDeviceKind {
    /** The strategy's own. */
    DEFAULT(DistModuleConstants.DIST_CROSS_DEVICE_DEFAULT),
    /** With an operator of yours, where you give one. */
    REDUCTION_TO_ONE_DEVICE(DistModuleConstants.DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE),
    /** TensorFlow's name for what libdist does anyway. */
    HIERARCHICAL_COPY(DistModuleConstants.DIST_CROSS_DEVICE_HIERARCHICAL_COPY),
    /** TensorFlow's name for what libdist does anyway. */
    NCCL(DistModuleConstants.DIST_CROSS_DEVICE_NCCL),
    /** TensorFlow's name for what libdist does anyway. */
    COLLECTIVE(DistModuleConstants.DIST_CROSS_DEVICE_COLLECTIVE),
    /** Functions of yours. */
    HOST(DistModuleConstants.DIST_CROSS_DEVICE_HOST);

    final int code;

    CrossDeviceKind(int code) {
        this.code = code;
    }

    static CrossDeviceKind of(int code) {
        return values()[code];
    }

    /** TensorFlow's name of it; null where it has none. */
    public String tfName() {
        return Texts.of(DistModule.dist_cross_device_name(code));
    }
}
