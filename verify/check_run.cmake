# cmake -D PROGRAM=path -D ARGUMENTS="a;b" -D CODE=n [-D OUTPUT=regex] [-D ERROR=regex] -P check_run.cmake
#
# Runs the program and fails unless it ends with that exit code and what it prints matches.
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error)
if(NOT code STREQUAL CODE)
    message(FATAL_ERROR "exit code ${code} instead of ${CODE}\n${output}${error}")
endif()
if(DEFINED OUTPUT AND NOT output MATCHES "${OUTPUT}")
    message(FATAL_ERROR "the output does not match ${OUTPUT}:\n${output}")
endif()
if(DEFINED ERROR AND NOT error MATCHES "${ERROR}")
    message(FATAL_ERROR "the messages do not match ${ERROR}:\n${error}")
endif()
