# The tests of the IR use the built-in ops.
foreach(name IN ITEMS ir_parser_test ir_random_test ir_size_equations_test ir_verifier_test ir_views_test)
    cuvil_unit_test(${name} LIBS cuvil_ops)
endforeach()
