# UNTRIED: nobody has built this port yet. It is an overlay port, which builds the tree in which it lies:
# vcpkg install libdist --overlay-ports=.ci/packaging
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

vcpkg_configure_meson(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -Dtests=disabled -Dexamples=disabled -Dbench=disabled -Dgo=disabled -Djava=disabled -Dpython=disabled
    -Disal=disabled -Dgrpc=disabled -Dgloo=disabled)
vcpkg_install_meson()
vcpkg_cmake_config_fixup(PACKAGE_NAME dist CONFIG_PATH lib/cmake/dist)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES dist-launch dist-info AUTO_CLEAN)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
