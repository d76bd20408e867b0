# add_kernel_module(NAME SOURCE PTX_ARCHITECTURE CUBINS [architecture...])
#
# Compiles one .cu file to PTX and to a cubin per listed architecture ("90", "90a", ...), and adds the library
# block_attention_kernel_NAME. It holds them as data, so that a program finds them without an install step, and declares
#     const block_attention::KernelModule& block_attention::NAME_module();
# in the generated header NAME_module.h.
#
# -fmad=false: a product and a sum are two roundings unless the source writes fmaf, so every device computes the same
# bits. -lineinfo: the simulator names CUDA source lines.
function(add_kernel_module name source ptx_architecture)
    cmake_parse_arguments(PARSE_ARGV 3 module "" "" "CUBINS")
    get_filename_component(input ${source} ABSOLUTE)
    file(RELATIVE_PATH display ${PROJECT_SOURCE_DIR} ${input})
    set(directory ${CMAKE_CURRENT_BINARY_DIR}/${name}_module)
    file(MAKE_DIRECTORY ${directory})
    set(flags -std=c++20 -fmad=false -lineinfo -I${PROJECT_SOURCE_DIR} --Werror all-warnings)

    set(outputs ${directory}/${name}.ptx)
    add_custom_command(
        OUTPUT ${directory}/${name}.ptx
        COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${flags} -ptx -arch=compute_${ptx_architecture}
                -MD -MF ${directory}/${name}.ptx.d -o ${directory}/${name}.ptx ${input}
        DEPENDS ${input} DEPFILE ${directory}/${name}.ptx.d
        COMMENT "Compiling ${display} to PTX (compute_${ptx_architecture})" VERBATIM)

    set(embedded "")
    set(symbols "")
    set(entries "")
    foreach(architecture IN LISTS module_CUBINS)
        set(cubin ${directory}/${name}.sm_${architecture}.cubin)
        add_custom_command(
            OUTPUT ${cubin}
            COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${flags} -cubin
                    -gencode=arch=compute_${architecture},code=sm_${architecture}
                    -MD -MF ${cubin}.d -o ${cubin} ${input}
            DEPENDS ${input} DEPFILE ${cubin}.d
            COMMENT "Compiling ${display} for sm_${architecture}" VERBATIM)
        list(APPEND outputs ${cubin})
        string(REGEX MATCH "^[0-9]+" number ${architecture})
        string(COMPARE NOTEQUAL ${number} ${architecture} specific)
        if(specific)
            set(specific true)
        else()
            set(specific false)
        endif()
        set(symbol block_attention_${name}_sm_${architecture})
        string(APPEND embedded "    .globl ${symbol}, ${symbol}_end\n    .balign 16\n${symbol}:\n"
                               "    .incbin \"${cubin}\"\n${symbol}_end:\n")
        string(APPEND symbols "extern const std::byte ${symbol}[];\nextern const std::byte ${symbol}_end[];\n")
        string(APPEND entries "        {${number}, ${specific}, {${symbol}, ${symbol}_end}},\n")
    endforeach()
    list(LENGTH module_CUBINS cubin_count)

    set(module_name ${name})
    set(module_source ${display})
    set(module_ptx ${directory}/${name}.ptx)
    configure_file(${PROJECT_SOURCE_DIR}/reference/kernel_module.h.in ${directory}/${name}_module.h @ONLY)
    configure_file(${PROJECT_SOURCE_DIR}/reference/kernel_module.cpp.in ${directory}/${name}_module.cpp @ONLY)
    configure_file(${PROJECT_SOURCE_DIR}/reference/kernel_module.S.in ${directory}/${name}_module_data.S @ONLY)
    set_source_files_properties(${directory}/${name}_module_data.S PROPERTIES OBJECT_DEPENDS "${outputs}")

    add_library(block_attention_kernel_${name} STATIC
        ${directory}/${name}_module.cpp ${directory}/${name}_module_data.S)
    target_include_directories(block_attention_kernel_${name} PUBLIC ${directory})
    target_link_libraries(block_attention_kernel_${name} PUBLIC block_attention_reference)
endfunction()
