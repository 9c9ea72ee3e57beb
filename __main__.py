from metal_ipi.stacks.program import main

main()
