# The tests of the passes fold constants, too.
foreach(name IN ITEMS optimize_pass_test optimize_rules_test optimize_values_test)
    cuvil_unit_test(${name} LIBS cuvil_optimize cuvil_eval)
endforeach()
